"""The encoder of BERT by transformers' definition: Devlin et al. 2018; with the sizes of MiniLM for
6 layers."""
import torch
from transformers import BertConfig, BertModel


class Encoder(torch.nn.Module):
    """Returns the last layer's states. Attention is written out, as exporters write it."""

    def __init__(self, layers, width, heads):
        super().__init__()
        config = BertConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                            intermediate_size=4 * width, attn_implementation="eager")
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=token_type_ids).last_hidden_state
