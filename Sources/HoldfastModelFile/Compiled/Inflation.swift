internal import CHoldfastZlib

/// Decompresses raw DEFLATE, the format of the models in stores.
enum Inflation {
  /// The maximum ratio of sizes. Models are compressed to about a tenth; DEFLATE's maximum is about a thousandth.
  private static let largestRatio = 200
  /// The number of bytes that are always allowed, whatever the ratio.
  private static let smallestLimit = 1 << 20

  /// The decompressed bytes.
  ///
  /// - Throws: ``ModelFileError`` if the bytes aren't exactly one DEFLATE stream, or would expand to more than `limit` or more than the
  ///   maximum ratio.
  static func inflate(_ packed: [UInt8], limit: Int) throws(ModelFileError) -> [UInt8] {
    let (product, isLarge) = packed.count.multipliedReportingOverflow(by: largestRatio)
    let limit = min(limit, isLarge ? limit : max(product, smallestLimit))
    guard packed.count <= limit else { throw tooLarge(limit) }
    var stream = z_stream()
    guard holdfast_inflate_begin_raw(&stream) == Z_OK else { throw failure("There isn't enough memory to decompress the model.") }
    defer { inflateEnd(&stream) }
    var input = packed
    return try input.withUnsafeMutableBufferPointer { input throws(ModelFileError) in
      stream.next_in = input.baseAddress
      stream.avail_in = UInt32(clamping: input.count)
      return try unpacked(&stream, limit)
    }
  }

  private static func unpacked(_ stream: inout z_stream, _ limit: Int) throws(ModelFileError) -> [UInt8] {
    var out: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let (result, count) = piece.withUnsafeMutableBufferPointer { piece in
        stream.next_out = piece.baseAddress
        stream.avail_out = UInt32(clamping: piece.count)
        let result = CHoldfastZlib.inflate(&stream, Z_NO_FLUSH)
        return (result, piece.count - Int(stream.avail_out))
      }
      guard count <= limit - out.count else { throw tooLarge(limit) }
      out += piece[..<count]
      if result == Z_STREAM_END {
        if stream.avail_in > 0 { throw failure("There are bytes after the end of the compressed data.") }
        return out
      }
      // No progress is possible if the output buffer or the input is exhausted, which zlib reports as an error.
      guard result == Z_OK, count > 0 || stream.avail_in > 0 else { throw failure("The compressed bytes are damaged or truncated.") }
    }
  }

  private static func failure(_ reason: String) -> ModelFileError { ModelFileError(.malformed, reason: reason) }

  private static func tooLarge(_ limit: Int) -> ModelFileError {
    ModelFileError(.tooLarge, reason: "The data would expand to more than \(limit) bytes, which is too large for a model.")
  }
}
