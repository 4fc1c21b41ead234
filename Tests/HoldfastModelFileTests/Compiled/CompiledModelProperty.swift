import HoldfastModelFile
import HoldfastStore

/// What must hold of any bytes that somebody gives as a compiled model. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a
/// test of those that it starts from.
enum CompiledModelProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    _ = try? CompiledModel(modelCache: bytes, options: options)
    guard let compiled = try? CompiledModel(bytes: bytes, options: options) else { return nil }
    let model = compiled.model
    let again = try? ManagedObjectModel(
      entities: model.declarations, versionIdentifiers: model.versionIdentifiers, configurations: model.configurations,
      fetchRequestTemplates: model.fetchRequestTemplates)
    if again != model { return "The declarations of a model that was read make another one." }
    return again?.versionDigest == model.versionDigest ? nil : "A model of the same declarations has other hashes."
  }

  /// Smaller than the defaults, so that the fuzzer meets them.
  private static let options = {
    var options = ModelFileOptions()
    options.maximumByteCount = 1 << 18
    options.maximumEntityCount = 12
    options.maximumPropertyCount = 60
    return options
  }()
}
