/// A request to read everything that an open store keeps, and to compare what it keeps twice, to find damage.
///
/// Reading all objects doesn't find all damage: an index or the other end of a relationship may contradict the rows. A store answers the
/// request if it keeps more than its requests read. Values in external files aren't part of it; reading them verifies them.
///
/// *Behaviour*: Changes nothing. Doesn't return if something is damaged.
///
/// *Errors*: `damaged`, with what is damaged or contradicts what; `notOpen`, and the errors of reading the file.
public struct VerificationRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// Nothing.
  public typealias Answer = Void
  /// A verb phrase for errors.
  public static var operation: String { "verify the store" }
}
