public import HoldfastStore

/// What a store author supplies so that the kit can try the store.
///
/// ```swift
/// struct MemoryHarness: StoreHarness {
///   var capabilities: StoreCapabilities { MemoryStore().capabilities }
///   func makePlace() -> StorePlace {
///     let contents = MemoryStoreContents()
///     return StorePlace(.memory(contents: contents), readOnly: .memory(contents: contents, isReadOnly: true))
///   }
/// }
/// ```
public protocol StoreHarness: Sendable {
  /// What the stores declare.
  var capabilities: StoreCapabilities { get }

  /// A place at which no store exists yet, and which no other call gives. Each case asks for its own.
  func makePlace() throws -> StorePlace
}

/// Where the data of one store lives: a file, a database, contents in memory.
public struct StorePlace: Sendable {
  /// Makes stores on the place. Every store finds what was committed by the one before.
  public var description: StoreDescription
  /// Makes stores on the place that may only read; nil when there is no such way to open it.
  public var readOnly: StoreDescription?
  /// Damages what lies there, while no store has it open, so that it is no store any more; nil when nothing can be.
  public var damage: (@Sendable () throws -> Void)?
  /// Removes what lies there. Called once, when all stores on it are closed.
  public var discard: @Sendable () -> Void

  /// Makes a place.
  public init(
    _ description: StoreDescription, readOnly: StoreDescription? = nil, damage: (@Sendable () throws -> Void)? = nil,
    discard: @escaping @Sendable () -> Void = {}
  ) {
    self.description = description
    self.readOnly = readOnly
    self.damage = damage
    self.discard = discard
  }
}
