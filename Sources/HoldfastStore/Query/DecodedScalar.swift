/// A scalar read from text that may be damaged.
struct DecodedScalar {
  /// The scalar; nil when the bytes are not well-formed UTF-8 (Unicode, table 3-7).
  private(set) var value: UInt32?
  /// The bytes that it takes: at least one, and exactly one when they are not well-formed.
  private(set) var length: Int

  /// Reads the scalar that begins at `position`, which lies inside the text.
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
    // Surrogates, numbers beyond Unicode, and encodings longer than need be are not text.
    guard let known = Unicode.Scalar(scalar), UTF8.width(known) == count else { return }
    value = scalar
    length = count
  }
}
