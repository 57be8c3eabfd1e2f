/* Doubly linked intrusive lists: an item holds the pointer to its successor (`next`) and the
   address of the pointer that points to it (`link`), so that it is removed in constant time without
   its head. A type may be in several lists, each with two fields of its own. */
#ifndef TENON_TENSOR_CONTEXT_LINKED_LIST_H
#define TENON_TENSOR_CONTEXT_LINKED_LIST_H

/** Inserts an item before the first one; `head` is the address of the pointer to the first. */
#define LIST_PUSH(head, item, next, link)                 \
  do {                                                    \
    (item)->next = *(head);                               \
    (item)->link = (head);                                \
    if ((item)->next) (item)->next->link = &(item)->next; \
    *(head) = (item);                                     \
  } while (0)

/** Removes an item from its list; `link` is NULL afterwards. */
#define LIST_REMOVE(item, next, link)                    \
  do {                                                   \
    *(item)->link = (item)->next;                        \
    if ((item)->next) (item)->next->link = (item)->link; \
    (item)->next = NULL;                                 \
    (item)->link = NULL;                                 \
  } while (0)

#endif
