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
  /// Makes stores on the place that have room for about 256 KiB and refuse more as a full disk does; nil when room cannot
  /// be bounded.
  public var cramped: StoreDescription?
  /// Copies what lies on the disk at this instant, while a store may have it open, to a place of its own: what a process
  /// that is killed now leaves behind. Nil when nothing lies on a disk.
  public var copy: (@Sendable () throws -> StorePlace)?
  /// Removes what lies there. Called once, when all stores on it are closed.
  public var discard: @Sendable () -> Void

  /// Makes a place.
  public init(
    _ description: StoreDescription, readOnly: StoreDescription? = nil, damage: (@Sendable () throws -> Void)? = nil,
    cramped: StoreDescription? = nil, copy: (@Sendable () throws -> StorePlace)? = nil,
    discard: @escaping @Sendable () -> Void = {}
  ) {
    self.description = description
    self.readOnly = readOnly
    self.damage = damage
    self.cramped = cramped
    self.copy = copy
    self.discard = discard
  }
}
