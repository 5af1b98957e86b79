"""What is measured: one module for each kind of work. `run(world, sizes)` yields figures."""
