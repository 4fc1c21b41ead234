import HoldfastStore

/// What must hold of any bytes that are given as a model in JSON. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a test
/// of those that it starts from.
enum ModelJSONProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    let model: ManagedObjectModel
    do { model = try ManagedObjectModel.decoded(canonicalJSON: bytes) } catch is DecodingError { return nil } catch is ModelError {
      return nil
    } catch { return "What was thrown is neither a DecodingError nor a ModelError: \(error)" }
    do {
      let text = try model.canonicalJSON()
      let again = try ManagedObjectModel.decoded(canonicalJSON: text)
      if try again.canonicalJSON() != text { return "What was written is written otherwise when it was read again." }
      return again.versionDigest == model.versionDigest ? nil : "The same model has other hashes when it was read again."
    } catch is EncodingError {
      // A default value that is a temporary ID.
      return nil
    } catch { return "What was written is not read: \(error)" }
  }
}
