/// A message of `count` bytes in which every byte value occurs: byte i is 31 i + 7, modulo 256.
func pattern(_ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31 + 7) }
}

/// The message cut into pieces of `size` bytes, the last one shorter.
func pieces(of message: [UInt8], size: Int) -> [ArraySlice<UInt8>] {
  stride(from: 0, to: message.count, by: size).map { message[$0..<min($0 + size, message.count)] }
}

/// The bytes in lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
