import HoldfastStore

/// What must hold of any bytes that somebody gives as a property list or keyed archive. The fuzzer in `Fuzzing/` checks it of bytes that it
/// makes up, a test of those that it starts from.
enum PropertyListProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    _ = PropertyList.isDictionary(bytes, ofKeysBeginningWith: ["NS", "_"])
    guard let list = try? PropertyList(bytes, limits: limits) else { return nil }
    // NaN differs from itself, so bytes are compared.
    guard (try? PropertyList(binary: list.binary))?.binary == list.binary else {
      return "The binary format says something else when read again."
    }
    if let text = try? list.xml(), (try? PropertyList(xml: Array(text.utf8))) == nil { return "XML that was written cannot be read." }
    guard let archive = try? KeyedArchive(list), let value = try? archive.propertyListValue(limits: limits) else { return nil }
    guard let copy = try? KeyedArchive.bytes(of: value), let again = try? KeyedArchive(copy).propertyListValue() else {
      return "An archive that was written cannot be read."
    }
    return again.binary == value.binary ? nil : "An archive says something else when it is read again."
  }

  /// Smaller than the defaults, so that the fuzzer meets them.
  private static let limits = PropertyListLimits(bytes: 1 << 14, depth: 12, objects: 2_000)
}
