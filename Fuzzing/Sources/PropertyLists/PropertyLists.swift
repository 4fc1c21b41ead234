import HoldfastStore

/// Any bytes are a property list or are refused; what is read can be written and read again, in both formats.
@_cdecl("LLVMFuzzerTestOneInput") public func fuzz(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  _ = PropertyList.isDictionary(bytes, ofKeysBeginningWith: ["NS", "_"])
  guard let list = try? PropertyList(bytes) else { return 0 }
  // NaN differs from itself, so the bytes are compared.
  let again = try? PropertyList(binary: list.binary)
  precondition(again?.binary == list.binary, "The binary format says something else when it is read again.")
  if let text = try? list.xml() { precondition((try? PropertyList(xml: Array(text.utf8))) != nil, "XML that was written is not read.") }
  guard let archive = try? KeyedArchive(list), let value = try? archive.propertyListValue() else { return 0 }
  let copy = (try? KeyedArchive.bytes(of: value)).flatMap { try? KeyedArchive($0).propertyListValue() }
  precondition(copy?.binary == value.binary, "A keyed archive says something else when it is read again.")
  return 0
}
