public import HoldfastRowStore
public import HoldfastStore
import Synchronization

/// The weakest store that the contract allows.
///
/// It declares no capabilities, evaluates no part of a query, and delivers rows in an unhelpful order. The entire framework must work with
/// it.
public final class MinimalStore: RowStore {
  /// The rows, which outlive the store so that another store can open them.
  public final class Contents: Sendable {
    fileprivate let state = Mutex(State())
    /// Creates empty contents.
    public init() {}
  }

  fileprivate struct State: Sendable {
    var isOpen = false
    var settings: [String: String] = [:]
    var rows: [String: [ObjectKey: StoredRow]] = [:]
    var links: Set<StoredLink> = []
  }

  private let contents: Contents
  /// Whether this store has the contents open.
  private let isOpen = Mutex(false)

  /// Creates a store without opening it.
  public init(contents: Contents = Contents()) { self.contents = contents }

  /// Returns a description whose stores share their contents.
  public static func description(contents: Contents = Contents()) -> StoreDescription {
    .rowStore("minimal") { MinimalStore(contents: contents) }
  }

  /// No capabilities.
  public var capabilities: StoreCapabilities { StoreCapabilities() }

  /// Opens the contents, unless another store has them open.
  public func open() throws -> [String: String] {
    try contents.state.withLock { state in
      guard !state.isOpen else {
        throw StoreError(.alreadyOpen, operation: "open the store", reason: "Another store has its contents open. Close that one first.")
      }
      state.isOpen = true
      isOpen.withLock { $0 = true }
      return state.settings
    }
  }

  /// Closes the contents.
  public func close() {
    let wasOpen = isOpen.withLock { isOpen in
      defer { isOpen = false }
      return isOpen
    }
    if wasOpen { contents.state.withLock { $0.isOpen = false } }
  }

  /// Does nothing, because the store declares no snapshots: every request may read the current rows.
  public func snapshot() {}

  /// Adds all rows of the entities: the last key first, and odd indexes before even ones.
  public func rows(matching query: RowQuery, in snapshot: Void, into output: RowOutput) throws {
    for entity in query.entities {
      let rows = contents.state.withLock { $0.rows[entity.name] ?? [:] }
      let descending = rows.keys.sorted(by: >)
      for remainder in [1, 0] {
        for (index, key) in descending.enumerated() where index % 2 == remainder { if let row = rows[key] { try output.add(row) } }
      }
    }
  }

  /// All links of all relationships.
  public func links(matching query: LinkQuery, in snapshot: Void) -> [StoredLink] { contents.state.withLock { Array($0.links) } }

  /// Applies the changes to the contents.
  public func apply(_ changes: RowChanges) {
    contents.state.withLock { state in
      state.settings.merge(changes.settings) { $1 }
      for row in changes.deletedRows { state.rows[row.entity]?[row.key] = nil }
      for row in changes.savedRows { state.rows[row.entity, default: [:]][row.key] = row }
      state.links.subtract(changes.deletedLinks)
      for link in changes.savedLinks { state.links.update(with: link) }
    }
  }
}
