/// IDs of objects as values of attributes: how they lie in rows.
///
/// A permanent ID is the text of its URI, as in every store. A *temporary* one stands in rows of changed objects only, never in a
/// store: a byte that no text begins with, and the parts of the ID. So no file can say one.
extension ManagedObjectID {
  private static let temporaryMark: UInt8 = 0xFF

  /// The ID that lies in a slot of an attribute; nil for bytes that are none.
  public init?(rowBytes bytes: UnsafeRawBufferPointer) {
    guard bytes.first == ManagedObjectID.temporaryMark else {
      self.init(uriRepresentation: String(decoding: bytes, as: UTF8.self))
      return
    }
    guard bytes.count == 1 + MemoryLayout<ManagedObjectID>.size else { return nil }
    let id = bytes.loadUnaligned(fromByteOffset: 1, as: ManagedObjectID.self)
    if !id.isTemporaryID { return nil }
    self = id
  }

  /// Whether bytes in a slot of an attribute are a temporary ID.
  @inlinable public static func isTemporary(rowBytes bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == 0xFF }

  /// The bytes for a slot of an attribute.
  public func withRowBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    if !isTemporaryID {
      var text = uriRepresentation
      return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
    let bytes = [ManagedObjectID.temporaryMark] + withUnsafeBytes(of: self) { Array($0) }
    return try bytes.withUnsafeBytes(body)
  }
}
