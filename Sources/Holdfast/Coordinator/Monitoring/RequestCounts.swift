/// The numbers of requests that a coordinator has sent to its stores; see ``PersistentStoreCoordinator/requestCounts``.
public struct RequestCounts: Sendable, Hashable {
  /// The number of fetches, including those that return IDs, counts or aggregates.
  public var fetches = 0
  /// The number of requests for rows by ID, mostly for faults.
  public var rows = 0
  /// The number of requests for the destinations of relationships. One request reads those of up to 1,024 siblings.
  public var relationships = 0
  /// The number of requests for permanent IDs.
  public var keyReservations = 0
  /// The number of saves. A save that changes several stores counts once for each.
  public var saves = 0
  /// The number of other requests: for external data, explanations, and outcomes of saves.
  public var others = 0

  /// Creates counts of zero.
  public init() {}

  /// The number of all requests.
  public var total: Int { fetches + rows + relationships + keyReservations + saves + others }

  /// The requests since earlier counts.
  public static func - (later: RequestCounts, earlier: RequestCounts) -> RequestCounts {
    var difference = RequestCounts()
    difference.fetches = later.fetches - earlier.fetches
    difference.rows = later.rows - earlier.rows
    difference.relationships = later.relationships - earlier.relationships
    difference.keyReservations = later.keyReservations - earlier.keyReservations
    difference.saves = later.saves - earlier.saves
    difference.others = later.others - earlier.others
    return difference
  }
}

extension RequestCounts: CustomStringConvertible {
  /// All counts in one line.
  public var description: String {
    "fetches \(fetches), rows \(rows), relationships \(relationships), key reservations \(keyReservations), saves \(saves), others \(others)"
  }
}
