import Synchronization

/// Why a device has no answer of the remote.
enum NetworkError: Error {
  /// The request didn't reach the remote.
  case unreachable
  /// The remote has carried out the request, or will still do so.
  case noAnswer
}

/// The way from a device to the remote and back. A test decides what goes wrong.
final class Connection: Sendable {
  enum Fault: Sendable {
    /// The request doesn't reach the remote.
    case requestLost
    /// The answer doesn't reach the device.
    case answerLost
    /// The request reaches the remote after a number of further requests. The device has given up.
    case requestLate(by: Int)
    /// The request reaches the remote twice.
    case requestTwice
    /// The device receives the answer to an earlier request instead.
    case answerLate
  }

  private struct InTransit {
    var uploads: [(upload: Upload, requestCount: Int)] = []
    /// The last three answers.
    var answers: [Batch] = []
  }

  private let remote: Remote
  private let fault: @Sendable () -> Fault?
  private let inTransit = Mutex(InTransit())

  /// Creates a connection.
  ///
  /// - Parameter fault: Returns what goes wrong with a request; nil for nothing.
  init(to remote: Remote, fault: @escaping @Sendable () -> Fault? = { nil }) { (self.remote, self.fault) = (remote, fault) }

  func send(_ upload: Upload) throws(NetworkError) {
    defer { deliverLateUploads() }
    switch fault() {
    case .requestLost: throw .unreachable
    case .requestLate(let count):
      // This request counts as well.
      inTransit.withLock { $0.uploads.append((upload, count + 1)) }
      throw .noAnswer
    case .answerLost:
      remote.receive(upload)
      throw .noAnswer
    case .requestTwice: for _ in 0..<2 { remote.receive(upload) }
    case .answerLate, nil: remote.receive(upload)
    }
  }

  func changes(after position: Int, limit: Int) throws(NetworkError) -> Batch {
    defer { deliverLateUploads() }
    let answer = remote.changes(after: position, limit: limit)
    switch fault() {
    case .requestLost, .requestLate: throw .unreachable
    case .answerLost: throw .noAnswer
    case .answerLate: return inTransit.withLock { $0.answers.first } ?? answer
    case .requestTwice, nil:
      inTransit.withLock { $0.answers = $0.answers.suffix(2) + [answer] }
      return answer
    }
  }

  private func deliverLateUploads() {
    let delivered = inTransit.withLock { inTransit in
      for place in inTransit.uploads.indices { inTransit.uploads[place].requestCount -= 1 }
      defer { inTransit.uploads.removeAll { $0.requestCount == 0 } }
      return inTransit.uploads.filter { $0.requestCount == 0 }.map(\.upload)
    }
    for upload in delivered { remote.receive(upload) }
  }
}
