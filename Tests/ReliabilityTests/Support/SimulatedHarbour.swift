import Holdfast
import HoldfastAtomicStore
import HoldfastStoreConformance

/// A whole-file store on a simulated disk.
struct SimulatedHarbour {
  static let name = "harbour"
  static let path = "/harbour"
  /// The names of the files on the disk between saves.
  static let names = [".harbour.lock", "harbour"]

  let store: FileStore
  let disk: SimulatedFileSystem

  /// An empty disk, or one with a file.
  init(_ store: FileStore, contents: [UInt8]? = nil) {
    self.store = store
    disk = SimulatedFileSystem()
    if let contents { disk.setContents(of: Self.name, contents) }
  }

  /// The bytes of a file after a number of saves of a voyage.
  static func contents(_ store: FileStore, saves: Int = 12) throws -> [UInt8] {
    let harbour = SimulatedHarbour(store)
    try Harbour.makeFile(harbour.description(), saves: saves)
    return harbour.contents ?? []
  }

  var contents: [UInt8]? { disk.contents(of: Self.name) }
  var temporaryNames: [String] { disk.names.filter { $0.hasSuffix(".tmp") } }

  func description(_ durability: DurableFileOptions.Durability = .full, through fileSystem: (any StoreFileSystem)? = nil)
    -> StoreDescription
  {
    store.description(
      at: Self.path, file: DurableFileOptions(durability: durability, lockTimeout: .seconds(0), fileSystem: fileSystem ?? disk))
  }

  func context(_ durability: DurableFileOptions.Durability = .full, through fileSystem: (any StoreFileSystem)? = nil) throws
    -> ManagedObjectContext
  {
    try Harbour.context(description(durability, through: fileSystem))
  }

  /// Opens a copy of the current file, and checks it.
  func found() throws -> (saves: Int, fault: String?) { try Self.found(store, contents) }

  static func found(_ store: FileStore, _ contents: [UInt8]?) throws -> (saves: Int, fault: String?) {
    let other = SimulatedHarbour(store, contents: contents)
    let context = try other.context()
    let found = try Voyage.check(context)
    try context.persistentStoreCoordinator.close()
    return found
  }
}
