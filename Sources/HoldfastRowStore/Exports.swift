// A row store uses the model, the values and the errors of `HoldfastStore`, so importing this module also imports that one.
@_exported public import HoldfastStore
