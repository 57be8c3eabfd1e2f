"""Drivers of the peers. A module has a class Side, made from a worker's settings, with version()
and prepare(task, inputs), which returns a worker.Work. Each is loaded in a separate process."""
