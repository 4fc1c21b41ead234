// Limits of rows, batches and files are numbers of type `Int` that need more than 32 bits.
#if !_pointerBitWidth(_64)
  #error("Holdfast needs 64-bit addresses.")
#endif
