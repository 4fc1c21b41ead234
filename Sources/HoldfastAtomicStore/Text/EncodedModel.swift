public import HoldfastStore
import Synchronization

/// The model as JSON, encoded once for all saves of a store.
public final class EncodedModel: Sendable {
  /// The model encoded last, and how; guarded for saves on several threads.
  private let last = Mutex<(model: ManagedObjectModel, bytes: [UInt8])?>(nil)

  /// Begins with no model.
  public init() {}

  /// The canonical JSON of a model.
  public func bytes(of model: ManagedObjectModel) throws -> [UInt8] {
    if let last = last.withLock({ $0 }), last.model === model { return last.bytes }
    let bytes = try model.canonicalJSON()
    last.withLock { $0 = (model, bytes) }
    return bytes
  }
}
