"""Methods of minimisation: `minimise` picks one from the registry, the driver runs it."""
