/// What libFuzzer calls with bytes of its own making.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: count))
  if let violation = ContentsProperty.violation(bytes) { fatalError(violation) }
  return 0
}
