"""Small networks of seeded random weights as PyTorch modules, each with its inputs at three sets of
sizes and the axes that are left open."""
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from transformers import (BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, T5Config, T5EncoderModel, WhisperConfig)
from transformers.cache_utils import DynamicCache
from transformers.models.whisper.modeling_whisper import WhisperEncoder


@dataclass
class Network:
    name: str
    make: callable           # → module
    inputs: callable         # sizes → {name: tensor}, in the order of forward's parameters
    sizes: list              # three sets of sizes
    open: dict               # input → {axis: name of its size}
    outputs: list
    open_outputs: dict = field(default_factory=dict)  # the old exporter wants these too
    exporters: tuple = ("old", "new")
    scripted: bool = False   # by torch.jit.script, as models with branches on values
    opset: Optional[int] = None
    tolerance: float = 1e-4


NETWORKS = {}


def network(sizes, open, outputs, **more):
    """Registers a class of modules with a method `inputs` of sizes."""
    def register(cls):
        name = more.pop("name", cls.__name__.lower())
        NETWORKS[name] = Network(name, cls, cls.inputs, sizes, open, outputs, **more)
        return cls
    return register


def normal(*shape):
    """Multiples of 1/8, which take little space."""
    return torch.round(torch.randn(*shape) * 8) / 8


def tokens(most, *shape):
    return torch.randint(0, most, shape)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, n):
        super().__init__()
        self.down, self.up = nn.Conv2d(n, n // 4, 1), nn.Conv2d(n // 4, n, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


@network([(1, 32, 32), (3, 48, 40), (2, 64, 33)], {"image": {0: "batch", 2: "height", 3: "width"}},
         ["scores"], open_outputs={"scores": {0: "batch"}})
class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
            nn.Conv2d(16, 16, 3, 1, 1, groups=16, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
            Gate(16), nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 24, 3, 1, "same"), nn.GELU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, 10))

    def forward(self, image):
        return self.layers(image).softmax(-1)

    @staticmethod
    def inputs(batch, height, width):
        return {"image": normal(batch, 3, height, width)}


@network([(1,), (4,), (7,)], {"image": {0: "batch"}}, ["scores"],
         open_outputs={"scores": {0: "batch"}})
class Vit(torchvision.models.VisionTransformer):
    def __init__(self):
        torch.backends.mha.set_fastpath_enabled(False)  # the old exporter does not know it
        super().__init__(image_size=24, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16,
                         mlp_dim=32, num_classes=10)
        nn.init.normal_(self.heads.head.weight)

    @staticmethod
    def inputs(batch):
        return {"image": normal(batch, 3, 24, 24)}


@network([(1, 8), (3, 19), (2, 5)],
         {n: {0: "batch", 1: "length"} for n in ("input_ids", "attention_mask", "token_type_ids")},
         ["last_hidden_state", "pooler_output"],
         open_outputs={"last_hidden_state": {0: "batch", 1: "length"}, "pooler_output": {0: "batch"}})
class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = BertModel(BertConfig(
            vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=24, max_position_embeddings=24))

    def forward(self, input_ids, attention_mask, token_type_ids):
        r = self.model(input_ids=input_ids, attention_mask=attention_mask,
                       token_type_ids=token_type_ids)
        return r.last_hidden_state, r.pooler_output

    @staticmethod
    def inputs(batch, length):
        mask = torch.ones(batch, length, dtype=torch.int64)
        for i in range(1, batch):
            mask[i, length - 2 * i:] = 0
        return {"input_ids": tokens(40, batch, length), "attention_mask": mask,
                "token_type_ids": tokens(2, batch, length)}


@network([(1, 8), (3, 19), (2, 5)],
         {n: {0: "batch", 1: "length"} for n in ("input_ids", "attention_mask")},
         ["embedding"], open_outputs={"embedding": {0: "batch"}}, exporters=("old",))
class Sentence(nn.Module):
    """T5's encoder with relative positions, the mean of the tokens that are no padding, and its
    direction."""

    def __init__(self):
        super().__init__()
        self.model = T5EncoderModel(T5Config(
            vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2,
            relative_attention_num_buckets=8, relative_attention_max_distance=16))

    def forward(self, input_ids, attention_mask):
        x = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        m = attention_mask.unsqueeze(-1).to(x.dtype)
        return F.normalize((x * m).sum(1) / m.sum(1).clamp(min=1e-9))

    inputs = staticmethod(lambda batch, length: {
        k: v for k, v in Bert.inputs(batch, length).items() if k != "token_type_ids"})


class Decoder(nn.Module):
    """A causal language model that takes and gives keys and values; two layers."""

    def forward(self, input_ids, attention_mask, past_k0, past_v0, past_k1, past_v1):
        cache = DynamicCache([(past_k0, past_v0), (past_k1, past_v1)])
        r = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache,
                       use_cache=True)
        kept = [x for layer in r.past_key_values.layers for x in (layer.keys, layer.values)]
        return r.logits, *kept

    @staticmethod
    def state(heads, size):
        def inputs(batch, length, past):
            mask = torch.ones(batch, past + length, dtype=torch.int64)
            mask[1:, 0] = 0
            given = {"input_ids": tokens(40, batch, length), "attention_mask": mask}
            for layer in range(2):
                for kind in "kv":
                    given[f"past_{kind}{layer}"] = normal(batch, heads, past, size)
            return given
        return staticmethod(inputs)


PAST = [f"past_{kind}{layer}" for layer in range(2) for kind in "kv"]
DECODER = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "total"},
           **{p: {0: "batch", 2: "past"} for p in PAST}}
DECODED = {"logits": {0: "batch", 1: "length"},
           **{p.replace("past", "present"): {0: "batch", 2: "total"} for p in PAST}}


@network([(1, 1, 6), (2, 3, 4), (2, 1, 9)], DECODER, list(DECODED), open_outputs=DECODED)
class Gpt2(Decoder):
    def __init__(self):
        super().__init__()
        self.model = GPT2LMHeadModel(GPT2Config(
            vocab_size=40, n_positions=24, n_embd=16, n_layer=2, n_head=2))

    inputs = Decoder.state(2, 8)


@network([(1, 1, 6), (2, 3, 4), (2, 1, 9)], DECODER, list(DECODED), exporters=("new",))
class Llama(Decoder):
    """Rotary positions, grouped heads, root mean squares."""

    def __init__(self):
        super().__init__()
        self.model = LlamaForCausalLM(LlamaConfig(
            vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=24))

    inputs = Decoder.state(2, 4)


@network([(1,), (2,), (3,)], {"features": {0: "batch"}}, ["states"],
         open_outputs={"states": {0: "batch"}})
class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = WhisperEncoder(WhisperConfig(
            d_model=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=32,
            num_mel_bins=8, max_source_positions=10))

    def forward(self, features):
        return self.model(features).last_hidden_state

    @staticmethod
    def inputs(batch):
        return {"features": normal(batch, 8, 20)}


@network([(1, 7), (4, 12), (2, 3)], {"words": {0: "batch", 1: "length"}}, ["tags"],
         open_outputs={"tags": {0: "batch", 1: "length"}})
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 10, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(20, 6)

    def forward(self, words):
        return self.head(self.lstm(self.embedding(words))[0])

    @staticmethod
    def inputs(batch, length):
        return {"words": tokens(50, batch, length)}


@network([(1, 7), (4, 12), (2, 3)], {"words": {0: "batch", 1: "length"}, "lengths": {0: "batch"}},
         ["state"], open_outputs={"state": {0: "batch"}}, exporters=("old",))
class Packed(nn.Module):
    """A GRU over sequences of several lengths; the last states."""

    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(50, 12), nn.GRU(12, 10, batch_first=True)

    def forward(self, words, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(words), lengths, batch_first=True)
        first = torch.zeros(1, words.shape[0], 10)
        return self.gru(packed, first)[1][-1]

    @staticmethod
    def inputs(batch, length):
        return {"words": tokens(50, batch, length),
                "lengths": torch.arange(length, length - batch, -1).clamp(min=1)}


def twice(n, m):
    return nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.GroupNorm(2, m), nn.SiLU(),
                         nn.Conv2d(m, m, 3, padding=1), nn.BatchNorm2d(m), nn.LeakyReLU(0.1))


@network([(1, 16, 16), (2, 24, 32), (1, 21, 27)],
         {"image": {0: "batch", 2: "height", 3: "width"}}, ["mask"],
         open_outputs={"mask": {0: "batch", 2: "height", 3: "width"}})
class Unet(nn.Module):
    """Encoder and decoder; odd sizes are padded to those of the other side."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = twice(3, 6), twice(6, 12), twice(12, 16)
        self.up = nn.ConvTranspose2d(16, 12, 2, 2)
        self.four, self.five, self.head = twice(24, 12), twice(18, 6), nn.Conv2d(6, 2, 1)

    def forward(self, image):
        a = self.one(image)
        b = self.two(F.max_pool2d(a, 2))
        c = self.up(self.three(F.avg_pool2d(b, 2)))
        h, w = b.shape[2] - c.shape[2], b.shape[3] - c.shape[3]
        c = F.pad(c, (w // 2, w - w // 2, h // 2, h - h // 2))
        d = self.four(torch.cat([b, c], 1))
        d = F.interpolate(d, size=a.shape[2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.head(self.five(torch.cat([a, d], 1))))

    @staticmethod
    def inputs(batch, height, width):
        return {"image": normal(batch, 3, height, width)}


@network([(2, 8, 8), (1, 12, 16), (3, 16, 8)],
         {"image": {0: "batch", 2: "height", 3: "width"}, "step": {0: "batch"}}, ["noise"],
         open_outputs={"noise": {0: "batch", 2: "height", 3: "width"}})
class Diffusion(nn.Module):
    """A step of denoising: sines of the step, group norms, attention over pixels."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 8), nn.SiLU(), nn.Linear(8, 8))
        self.inside, self.down = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.norm, self.qkv, self.out = nn.GroupNorm(4, 8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.outside = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, image, step):
        rate = torch.exp(torch.arange(8, device=image.device) * -(9.21 / 8))
        angle = step[:, None].float() * rate[None]
        t = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        a = self.inside(image) + t[:, :, None, None]
        x = self.down(a)
        n, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(y).view(n, h * w, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, h * w, c)
        x = x + self.out(y).transpose(1, 2).view(n, c, h, w)
        x = self.up(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.outside(F.silu(torch.cat([a, x], 1)))

    @staticmethod
    def inputs(batch, height, width):
        return {"image": normal(batch, 4, height, width), "step": tokens(1000, batch)}


@network([(1, 12, 12), (2, 9, 14), (1, 16, 8)],
         {"image": {0: "batch", 2: "height", 3: "width"}}, ["larger"],
         open_outputs={"larger": {0: "batch", 2: "height", 3: "width"}})
class Superres(nn.Module):
    """A picture of twice the size: pixel shuffle beside bicubic interpolation."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 5, padding=2), nn.Conv2d(8, 12, 3, padding=1)
        self.prelu = nn.PReLU(8)

    def forward(self, image):
        x = F.pixel_shuffle(self.two(self.prelu(self.one(F.pad(image, (1, 1, 1, 1), "reflect")))), 2)
        big = F.interpolate(image, scale_factor=2, mode="bicubic", align_corners=False)
        return (x[:, :, 2:-2, 2:-2] + big).clamp(0, 1)

    @staticmethod
    def inputs(batch, height, width):
        return {"image": torch.rand(batch, 3, height, width)}


@network([(32, 32), (48, 40), (40, 64)], {"image": {2: "height", 3: "width"}},
         ["boxes", "scores", "labels"],
         open_outputs={n: {0: "found"} for n in ("boxes", "scores", "labels")})
class Detector(nn.Module):
    """Boxes of two scales about cells, the best by score, and of those that overlap one."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 4, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, 2, 1),
                                  nn.ReLU())
        self.classes, self.boxes = nn.Conv2d(12, 2 * 4, 3, padding=1), nn.Conv2d(12, 2 * 4, 1)
        nn.init.normal_(self.classes.weight, std=0.3)

    def forward(self, image):
        x = self.body(image)
        h, w = x.shape[2], x.shape[3]
        y, x_ = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = (torch.stack([x_, y], -1).float() + 0.5).reshape(-1, 1, 2) * 8
        anchor = torch.tensor([12.0, 24.0]).view(1, 2, 1).expand(h * w, 2, 2).reshape(-1, 2)
        centre = centre.expand(h * w, 2, 2).reshape(-1, 2)
        scores = self.classes(x).permute(0, 2, 3, 1).reshape(-1, 4).softmax(-1)[:, 1:]
        delta = self.boxes(x).permute(0, 2, 3, 1).reshape(-1, 4)
        middle, size = centre + delta[:, :2] * anchor, delta[:, 2:].clamp(max=4).exp() * anchor
        boxes = torchvision.ops.clip_boxes_to_image(
            torch.cat([middle - size / 2, middle + size / 2], -1), (image.shape[2], image.shape[3]))
        score, label = scores.max(-1)
        kept = torch.where(score > 0.35)[0]
        boxes, score, label = boxes[kept], score[kept], label[kept]
        kept = torchvision.ops.nms(boxes, score, 0.5)[:20]
        return boxes[kept], score[kept], label[kept]

    @staticmethod
    def inputs(height, width):
        return {"image": normal(1, 3, height, width)}


@network([(32, 32), (48, 40), (40, 64)], {"image": {2: "height", 3: "width"}},
         ["boxes", "scores", "labels"], name="topdetector")
class TopDetector(Detector):
    """The eight best cells, as detectors without suppression give them."""

    def forward(self, image):
        x = self.body(image)
        scores = self.classes(x).sigmoid().flatten(1)
        score, at = scores.topk(8, -1)
        cells = x.shape[2] * x.shape[3]
        boxes = self.boxes(x).view(-1, 2, 4, cells).permute(0, 3, 1, 2).flatten(1, 2)
        label = torch.div(at, cells, rounding_mode="floor")
        cell = at % cells
        return boxes.gather(1, cell.unsqueeze(-1).expand(-1, -1, 4)), score, label


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1),
            nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d((2, 1)))
        self.lstm, self.head = nn.LSTM(12 * 4, 8, bidirectional=True), nn.Linear(16, 11)
        nn.init.normal_(self.head.weight)

    def scores(self, line):
        x = self.body(line)
        n, c, h, w = x.shape
        x = x.permute(3, 0, 1, 2).reshape(w, n, c * h)
        return F.log_softmax(self.head(self.lstm(x)[0]), -1)

    @staticmethod
    def inputs(batch, width):
        return {"line": normal(batch, 1, 16, width)}


@network([(1, 32), (3, 40), (2, 77)], {"line": {0: "batch", 3: "width"}}, ["log_probabilities"],
         open_outputs={"log_probabilities": {0: "steps", 1: "batch"}})
class Ocr(Recogniser):
    """Scores of characters, step by step (connectionist temporal classification)."""

    def forward(self, line):
        return self.scores(line)


@network([(1, 32), (1, 40), (1, 77)], {"line": {3: "width"}}, ["text", "log_probability"],
         open_outputs={"text": {0: "characters"}}, exporters=("old",))
class Ctc(Recogniser):
    """The characters read: of each run of equal ones the first, without blanks (0)."""

    def forward(self, line):
        score, best = self.scores(line)[:, 0].max(-1)
        before = torch.cat([torch.zeros_like(best[:1]), best[:-1]])
        return torch.masked_select(best, (best != before) & (best != 0)), score.sum()


@network([(1, 64, 1), (1, 64, 2), (1, 128, 2)], {"sound": {0: "batch", 1: "samples"}},
         ["speech", "next_state"], scripted=True, exporters=("old",), name="streaming",
         open_outputs={"speech": {0: "batch"}, "next_state": {1: "batch"}})
class Streaming(nn.Module):
    """A detector of speech like Silero's: branches on the rate and on sizes, one in another, and a
    state."""

    def __init__(self):
        super().__init__()
        self.slow, self.fast = nn.Conv1d(1, 8, 16, 8), nn.Conv1d(1, 8, 16, 16)
        self.norm = nn.BatchNorm1d(8)
        self.cell, self.head = nn.LSTMCell(8, 8), nn.Linear(8, 1)

    def forward(self, sound, state, rate):
        # type: (Tensor, Tensor, Tensor) -> Tuple[Tensor, Tensor]
        if bool(rate == 16000):
            if sound.shape[1] > 100:
                x = self.fast(sound.unsqueeze(1)[:, :, ::2])
            else:
                x = self.fast(sound.unsqueeze(1))
        else:
            x = self.slow(sound.unsqueeze(1))
        x = F.relu(self.norm(x)).mean(-1)
        h, c = self.cell(x, (state[0], state[1]))
        return torch.sigmoid(self.head(F.relu(h))), torch.stack([h, c])

    @staticmethod
    def inputs(batch, samples, rate):
        return {"sound": normal(batch, samples), "state": normal(2, batch, 8),
                "rate": torch.tensor(8000 * rate)}


@network([(1, 24), (2, 40), (3, 17)], {"sound": {0: "batch", 2: "length"}}, ["sound_out"],
         open_outputs={"sound_out": {0: "batch", 2: "length"}})
class Tcn(nn.Module):
    """Dilated causal convolutions of weights by their norms."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList(norm(nn.Conv1d(8 if i else 2, 8, 3, dilation=2 ** i))
                                    for i in range(3))
        self.head = nn.Conv1d(8, 2, 1)

    def forward(self, sound):
        for i, layer in enumerate(self.layers):
            y = F.elu(layer(F.pad(sound, (2 * 2 ** i, 0))))
            sound = y + sound if i else y
        return self.head(F.glu(torch.cat([sound, sound], 1), 1)).tanh()

    @staticmethod
    def inputs(batch, length):
        return {"sound": normal(batch, 2, length)}


@network([(5, 9), (12, 40), (3, 2)], {"x": {0: "nodes"}, "edges": {1: "edges"}}, ["graph"])
class Graph(nn.Module):
    """Messages along edges: sums and maxima at their ends."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(6, 8), nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, x, edges):
        x = F.relu(self.one(x))
        sent = x[edges[0]]
        total = torch.zeros_like(x).index_add(0, edges[1], sent)
        at = edges[1].unsqueeze(-1).expand(-1, 8)
        most = torch.zeros_like(x).scatter_reduce(0, at, sent, "amax", include_self=True)
        x = F.relu(self.two(torch.cat([total, most], -1)))
        return self.head(x.mean(0, keepdim=True))

    @staticmethod
    def inputs(nodes, edges):
        return {"x": normal(nodes, 6), "edges": tokens(nodes, 2, edges)}


@network([(4, 1, 5), (9, 3, 7), (6, 2, 3)],
         {"source": {0: "from", 1: "batch"}, "target": {0: "to", 1: "batch"}}, ["states"],
         open_outputs={"states": {0: "to", 1: "batch"}})
class Translator(nn.Module):
    """PyTorch's transformer with a causal mask."""

    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(16, 2, 1, 1, 24, dropout=0.0)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[0])
        return self.model(source, target, tgt_mask=mask)

    @staticmethod
    def inputs(from_, batch, to):
        return {"source": normal(from_, batch, 16), "target": normal(to, batch, 16)}


@network([(1, 64), (3, 100), (2, 200)], {"sound": {0: "batch", 1: "samples"}}, ["mel"],
         open_outputs={"mel": {0: "batch", 2: "frames"}})
class Spectrum(nn.Module):
    """Logarithms of a spectrum's bands."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("bands", torch.rand(6, 17))

    def forward(self, sound):
        s = torch.stft(sound, 32, 8, window=self.window, center=False, onesided=True,
                       return_complex=False if not torch.compiler.is_compiling() else True)
        power = s.pow(2).sum(-1) if not s.is_complex() else torch.view_as_real(s).pow(2).sum(-1)
        return torch.log(torch.clamp(self.bands @ power, min=1e-5))

    @staticmethod
    def inputs(batch, samples):
        return {"sound": normal(batch, samples)}


@network([(2, 5), (1, 16), (3, 33)], {"categories": {0: "rows"}, "numbers": {0: "rows"}}, ["click"],
         open_outputs={"click": {0: "rows"}}, name="recommender")
class Recommender(nn.Module):
    """Embeddings of categories, their products in pairs, and a bag of items."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 4) for _ in range(3))
        self.below, self.above = nn.Linear(5, 4), nn.Linear(10, 1)

    def forward(self, categories, numbers):
        x = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        x = torch.stack([F.relu(self.below(torch.log1p(numbers))), *x], 1)
        product = torch.bmm(x, x.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, -1)
        return torch.sigmoid(self.above(torch.cat([x[:, 0], product[:, i, j]], -1))).squeeze(-1)

    @staticmethod
    def inputs(_, rows):
        return {"categories": tokens(20, rows, 3), "numbers": torch.rand(rows, 5)}
