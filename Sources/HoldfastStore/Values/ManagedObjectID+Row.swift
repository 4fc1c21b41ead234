/// How object IDs are stored in rows as attribute values.
///
/// A permanent ID is the text of its URI, as in every store. A *temporary* ID is a byte that can't begin a text, then the components of the
/// ID. It occurs only in rows of changed objects, never in a store or file.
extension ManagedObjectID {
  private static let temporaryMark: UInt8 = 0xFF

  /// The ID in an attribute's slot, or nil if the bytes aren't an ID. A permanent one is that of ``init(storedURI:)``.
  public init?(rowBytes bytes: UnsafeRawBufferPointer) {
    guard bytes.first == ManagedObjectID.temporaryMark else {
      self.init(storedURI: String(decoding: bytes, as: UTF8.self))
      return
    }
    guard bytes.count == 1 + MemoryLayout<ManagedObjectID>.size else { return nil }
    let id = bytes.loadUnaligned(fromByteOffset: 1, as: ManagedObjectID.self)
    if !id.isTemporaryID { return nil }
    self = id
  }

  /// Whether bytes in a slot of an attribute represent a temporary ID.
  @inlinable public static func isTemporary(rowBytes bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == 0xFF }

  /// Calls a closure with the bytes to store in a slot of an attribute.
  public func withRowBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    if !isTemporaryID {
      var text = uriRepresentation
      return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
    let bytes = [ManagedObjectID.temporaryMark] + withUnsafeBytes(of: self) { Array($0) }
    return try bytes.withUnsafeBytes(body)
  }
}

/// The text of object IDs in rows, and in the files of stores.
public enum ObjectIDText {
  /// Whether bytes are the URI of a permanent ID.
  ///
  /// Unlike ``ManagedObjectID/init(uriRepresentation:)``, the result doesn't depend on which stores this process has opened. Stores check
  /// the values of attributes with it, so that a file can be read before the stores that its object IDs name are opened.
  public static func isURI(_ bytes: UnsafeRawBufferPointer) -> Bool {
    String(validating: bytes, as: UTF8.self).map { ManagedObjectID.parts(of: $0) != nil } ?? false
  }
}
