extension [UInt8] {
  /// Copies bytes.
  init(_ bytes: RawSpan) { self = bytes.withUnsafeBytes { Self($0) } }
}

extension OutputRawSpan {
  /// Appends bytes. The output must have room.
  mutating func append(_ bytes: ArraySlice<UInt8>) {
    withUnsafeMutableBytes { memory, count in
      UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyBytes(from: bytes)
      count += bytes.count
    }
  }
}
