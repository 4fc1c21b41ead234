public import HoldfastFiles
public import HoldfastStore

/// Provides the stores that the kit tests.
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
  /// The capabilities that the stores declare.
  var capabilities: StoreCapabilities { get }

  /// Whether the stores decline some requests that their capabilities allow. Declining is to throw `unsupportedRequest` from `fetch` or
  /// `tooLarge` from `relationships`, or to report attributes that the store can't compare. The framework then does the rest, and the kit
  /// tests the combined results. Defaults to false: every refusal is a failure.
  var declinesRequests: Bool { get }

  /// Creates a place without a store. Each case calls this method, and each call must return a different place.
  func makePlace() throws -> StorePlace
}

extension StoreHarness {
  /// Whether the stores decline some requests that their capabilities allow. False by default.
  public var declinesRequests: Bool { false }
}

/// The location of one store's data: a file, a database, or contents in memory.
public struct StorePlace: Sendable {
  /// Creates stores at the place. Each store must find what earlier stores committed.
  public var description: StoreDescription
  /// Creates read-only stores at the place; nil if that isn't supported.
  public var readOnly: StoreDescription?
  /// Damages the data so that it's no longer a valid store; nil if that isn't possible. No store has the data open when the kit
  /// calls this closure.
  public var damage: (@Sendable () throws -> Void)?
  /// Creates stores with room for about 256 KiB that behave like a full disk beyond it; nil if that isn't possible.
  public var cramped: StoreDescription?
  /// Copies the data to a new place, as a process killed now would leave it; nil if the store has no files. A store can have the
  /// data open.
  public var copy: (@Sendable () throws -> StorePlace)?
  /// The file, for cases that damage it; nil if the store has none, or can't detect damage in it.
  public var file: DamageableFile?
  /// Lists the external files, for cases that damage them; nil if there are none. No store has the data open when the kit calls this
  /// closure.
  public var externalFiles: (@Sendable () throws -> [DamageableFile])?
  /// Describes a store on a file system, for cases that simulate power losses and failed calls; nil if the store can't use the file system.
  /// Each file system passed to the closure contains one store, always at the same path.
  public var onFileSystem: (@Sendable (any StoreFileSystem) -> StoreDescription)?
  /// Removes the data. The kit calls this closure once, after it closed all stores at the place.
  public var discard: @Sendable () -> Void

  /// Creates a place.
  public init(
    _ description: StoreDescription, readOnly: StoreDescription? = nil, damage: (@Sendable () throws -> Void)? = nil,
    cramped: StoreDescription? = nil, copy: (@Sendable () throws -> StorePlace)? = nil, file: DamageableFile? = nil,
    externalFiles: (@Sendable () throws -> [DamageableFile])? = nil,
    onFileSystem: (@Sendable (any StoreFileSystem) -> StoreDescription)? = nil,
    discard: @escaping @Sendable () -> Void = {}
  ) {
    self.description = description
    self.readOnly = readOnly
    self.damage = damage
    self.cramped = cramped
    self.copy = copy
    self.file = file
    self.externalFiles = externalFiles
    self.onFileSystem = onFileSystem
    self.discard = discard
  }
}

/// A file of a store, which the kit damages.
public struct DamageableFile: Sendable {
  /// The distance between the bytes that are changed, and between the lengths to which the file is truncated.
  public var step: Int
  /// Reads the file.
  public var read: @Sendable () throws -> [UInt8]
  /// Replaces the contents of the file, and creates it if it was removed. No store has it open.
  public var write: @Sendable ([UInt8]) throws -> Void
  /// Removes the file. No store has it open. If nil, the kit doesn't test a missing file.
  public var remove: (@Sendable () throws -> Void)?

  /// Creates access to a file.
  ///
  /// - Parameters:
  ///   - step: The distance between damaged bytes. Defaults to 7. A step of 1 damages every byte.
  ///   - read: Reads the file.
  ///   - write: Replaces the contents of the file.
  ///   - remove: Removes the file. Defaults to nil, which means that the kit doesn't test a missing file.
  public init(
    step: Int = 7, read: @escaping @Sendable () throws -> [UInt8], write: @escaping @Sendable ([UInt8]) throws -> Void,
    remove: (@Sendable () throws -> Void)? = nil
  ) {
    self.step = step
    self.read = read
    self.write = write
    self.remove = remove
  }
}
