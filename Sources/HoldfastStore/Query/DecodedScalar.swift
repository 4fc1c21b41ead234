/// A scalar read from possibly damaged text.
struct DecodedScalar {
  /// The scalar, or nil if the bytes aren't well-formed UTF-8 (Unicode, table 3-7).
  private(set) var value: UInt32?
  /// The number of bytes read: at least one, and exactly one if they aren't well-formed.
  private(set) var length: Int

  /// Reads the scalar at `position`. Requires a position inside the text.
  init(at position: Int, in text: UnsafeRawBufferPointer) {
    let lead = text[position]
    value = lead < 0x80 ? UInt32(lead) : nil
    length = 1
    guard lead >= 0xC2, lead <= 0xF4 else { return }
    let count = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    guard count <= text.count - position else { return }
    var scalar = UInt32(lead) & (0x7F >> UInt32(count))
    for offset in 1..<count {
      let byte = text[position + offset]
      guard byte & 0xC0 == 0x80 else { return }
      scalar = scalar << 6 | UInt32(byte & 0x3F)
    }
    // Excludes surrogates, numbers beyond Unicode, and overlong encodings.
    guard let known = Unicode.Scalar(scalar), UTF8.width(known) == count else { return }
    value = scalar
    length = count
  }
}
