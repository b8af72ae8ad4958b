"""What a model is asked to do: one module per task, found by :mod:`gpucost_tui.tasks.registry`."""
