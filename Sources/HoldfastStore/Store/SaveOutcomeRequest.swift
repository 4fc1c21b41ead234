#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A request for the outcome of a save whose commit threw ``StoreError/Code/outcomeUnknown``.
///
/// A store over a network answers it, because a connection can break while the server commits. The server keeps the IDs of recent saves.
///
/// *Behaviour*
/// - **S16**: Returns what happened to the save. After ``SaveOutcome/committed(_:)``, readers see the save, and **S15** holds for the
///   receipt. ``SaveOutcome/notCommitted`` is final: the save never takes effect, and the store throws when a save with this ID is prepared
///   or committed later. A repeated request returns the same answer, except that ``SaveOutcome/unknown`` can become one of the others.
///
/// Also works after the store was reopened. If the store no longer knows the save, it returns ``SaveOutcome/unknown``.
///
/// *Errors*: `connectionLost`, `timedOut`, `inputOutput`, `notOpen`. They don't change the outcome.
public struct SaveOutcomeRequest: StoreRequest {
  /// The ID of the save, from ``SaveRequest/origin``.
  public var id: UUID

  /// Creates a request.
  public init(id: UUID) { self.id = id }

  /// What happened to the save.
  public typealias Answer = SaveOutcome
  /// A verb phrase for errors.
  public static var operation: String { "find out whether a save took effect" }
}

/// What happened to a save whose commit failed.
public enum SaveOutcome: Sendable {
  /// The save took effect. The receipt is the one that the commit would have returned.
  case committed(SaveReceipt)
  /// The save never takes effect.
  case notCommitted
  /// The store can't determine the outcome now, for example because the server is still committing.
  case unknown
}
