/// The fuzzer calls it with bytes that it makes up; a trap is what it looks for.
@_cdecl("LLVMFuzzerTestOneInput") public func fuzz(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  if let violation = ModelJSONProperty.violation(Array(UnsafeBufferPointer(start: bytes, count: count))) { fatalError(violation) }
  return 0
}
