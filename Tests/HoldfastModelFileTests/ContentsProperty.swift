import HoldfastModelFile
import HoldfastStore

/// What must hold of any bytes that somebody gives as a `contents` file. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a
/// test of those that it kept.
enum ContentsProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    guard let document = try? ModelDocument(bytes: bytes, options: options) else { return nil }
    guard let written = try? document.serialized() else { return "What was read cannot be written." }
    guard let again = try? ModelDocument(bytes: written) else { return "What was written cannot be read." }
    if again != document { return "What was written and read again is something else." }
    if (try? again.serialized()) != written { return "It is not written the same twice." }
    return (try? document.model(options: options)).flatMap(violation)
  }

  private static func violation(_ model: ManagedObjectModel) -> String? {
    guard let written = try? ModelDocument(model).serialized() else { return "A model that was read cannot be written." }
    guard let again = try? ModelDocument(bytes: written).model() else { return "A model that was written cannot be read." }
    if again.versionDigest != model.versionDigest { return "A model that was written has other hashes." }
    return (try? ModelDocument(again).serialized()) == written ? nil : "A model is not written the same twice."
  }

  /// Smaller than the defaults, so that the fuzzer meets them.
  private static let options = {
    var options = ModelFileOptions()
    options.maximumDepth = 12
    options.maximumElementCount = 500
    options.maximumAttributeCount = 2_000
    options.maximumAttributesPerElement = 40
    options.maximumValueByteCount = 2_000
    options.maximumEntityCount = 100
    options.maximumPropertyCount = 2_000
    return options
  }()
}
