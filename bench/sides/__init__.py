"""How each peer is driven: a module has a class Side, made from a worker's settings, with version()
and prepare(task, inputs), which gives a worker.Work. Each is loaded in a process of its own."""
