/// A request for how the store would execute a fetch, for people who look for the cause of a slow one.
///
/// A store that sends statements to a database answers it, for example with the indexes that the database would use.
///
/// *Requires*: The store's capabilities declare everything that the plan uses.
///
/// *Behaviour*
/// - **E1**: Returns text without any value of the plan's predicate. Reads no rows of the plan's entities.
///
/// *Errors*: `unsupportedRequest` if the store declines the plan; `notOpen`, `inputOutput`.
public struct ExplanationRequest: StoreRequest {
  /// The fetch.
  public var plan: FetchPlan

  /// Creates a request.
  public init(_ plan: FetchPlan) { self.plan = plan }

  /// Lines of text in the store's own terms, such as a statement and the steps of its execution.
  public typealias Answer = String
  /// A verb phrase for errors.
  public static var operation: String { "explain a fetch" }
}
