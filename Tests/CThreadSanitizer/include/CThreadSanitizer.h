// The module has no declarations.
