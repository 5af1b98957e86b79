"""The contestants. Each module is imported only in the environment that has its distribution."""
