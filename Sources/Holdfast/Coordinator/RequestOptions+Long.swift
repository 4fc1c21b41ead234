import HoldfastStore
import Synchronization

// Long requests to stores that aren't open.
extension RequestOptions {
  /// A request that is cancelled with its task.
  static var cancelledWithTask: RequestOptions { RequestOptions(cancellation: RequestCancellation()) }

  /// A request that is cancelled with its task, and reports its progress to a closure, which receives only growing shares.
  static func reporting(to progress: @escaping @Sendable (Double) -> Void) -> RequestOptions {
    let last = Mutex(-1.0)
    return RequestOptions(
      cancellation: RequestCancellation(),
      progress: { share in
        let isGreater = last.withLock { last in
          defer { last = max(last, share) }
          return share > last
        }
        if isGreater { progress(share) }
      })
  }
}
