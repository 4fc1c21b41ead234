internal import CZlib

/// Unpacks raw DEFLATE, in which stores keep their model.
enum Inflation {
  /// Models are packed to a tenth or so; a thousandth is the most that DEFLATE can do.
  private static let largestRatio = 200
  /// So much is unpacked whatever it was packed to.
  private static let smallestLimit = 1 << 20

  /// The bytes that were packed.
  ///
  /// - Throws: ``ModelFileError`` when they are no DEFLATE stream, end early, go on behind its end, or would be more than `limit` or
  ///   more than a model can be packed from.
  static func inflate(_ packed: [UInt8], limit: Int) throws(ModelFileError) -> [UInt8] {
    let (product, isLarge) = packed.count.multipliedReportingOverflow(by: largestRatio)
    let limit = min(limit, isLarge ? limit : max(product, smallestLimit))
    guard packed.count <= limit else { throw tooLarge(limit) }
    var stream = z_stream()
    guard holdfast_inflate_begin_raw(&stream) == Z_OK else { throw failure("There is no memory to unpack it.") }
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
        let result = CZlib.inflate(&stream, Z_NO_FLUSH)
        return (result, piece.count - Int(stream.avail_out))
      }
      guard count <= limit - out.count else { throw tooLarge(limit) }
      out += piece[..<count]
      if result == Z_STREAM_END {
        if stream.avail_in > 0 { throw failure("There are bytes behind its end.") }
        return out
      }
      // Without room in the piece or input there is no progress, which zlib calls an error.
      guard result == Z_OK, count > 0 || stream.avail_in > 0 else { throw failure("The packed bytes are damaged or end early.") }
    }
  }

  private static func failure(_ reason: String) -> ModelFileError { ModelFileError(.malformed, reason: reason) }

  private static func tooLarge(_ limit: Int) -> ModelFileError {
    ModelFileError(.tooLarge, reason: "It would unpack to more than \(limit) bytes, which no model does.")
  }
}
