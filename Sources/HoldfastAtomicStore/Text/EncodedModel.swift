public import HoldfastStore
import Synchronization

/// A cache of the model's JSON, so that a store encodes it only once.
public final class EncodedModel: Sendable {
  /// The last encoded model and its JSON. Guarded because saves can come from several threads.
  private let last = Mutex<(model: ManagedObjectModel, bytes: [UInt8])?>(nil)

  /// Creates an empty cache.
  public init() {}

  /// The canonical JSON of a model.
  ///
  /// - Parameters:
  ///   - model: The model.
  ///   - check: Throws if a file with this JSON couldn't be read again. Called once for a model that passes. Defaults to no check.
  public func bytes(of model: ManagedObjectModel, checkedBy check: ([UInt8]) throws -> Void = { _ in }) throws -> [UInt8] {
    if let last = last.withLock({ $0 }), last.model === model { return last.bytes }
    let bytes = try model.canonicalJSON()
    try check(bytes)
    last.withLock { $0 = (model, bytes) }
    return bytes
  }
}
