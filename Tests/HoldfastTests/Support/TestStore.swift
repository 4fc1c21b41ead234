import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastXMLStore
import Synchronization

/// The stores on which the stack must behave alike.
enum TestStore: String, CaseIterable, Codable, Sendable {
  case memory
  case json
  case xml
  case binary
  case sqlite
  case weakest
  /// A memory store that is the second of its coordinator, after one without entities. All its keys are translated.
  case second
  /// A child of a context on a memory store, whose changes are saved when the place is closed. Only some tests use it: those that reach the
  /// store in other ways don't see what a child has saved, and uniqueness is checked by the save of the parent.
  case child
  /// A JSON file that is written when it is closed, and whose rows are in a temporary file, like the copies of a migration plan. Only random
  /// programs use it.
  case spilled
  /// A memory store that delivers rows in batches with others. Only random programs use it.
  case decoys

  /// The stores, without ``child``, ``spilled`` and ``decoys``.
  static let allCases: [TestStore] = [.memory, .json, .xml, .binary, .sqlite, .weakest, .second]
  /// The stores and ``child``.
  static let withChild = allCases + [.child]
  /// The stores for random programs.
  static let withAll = withChild + [.spilled, .decoys]

  /// Whether all rows are in memory, so that nothing is prefetched.
  var hasResidentRows: Bool { self == .memory || self == .child || self == .json || self == .xml || self == .binary }

  /// A store with its own contents, which can be reopened.
  ///
  /// - Parameter losesOutcomes: Whether ``Place/outcomes`` can lose the outcomes of saves.
  func makePlace(
    model: ManagedObjectModel = Kennel.model, classes: [ManagedObject.Type] = Kennel.classes, losesOutcomes: Bool = false
  ) throws -> Place {
    Place(self, model, classes, losesOutcomes: losesOutcomes)
  }

  /// A store with two people: Ann with the dogs Fido and Rex, and Bob without dogs.
  func makeKennelsOfTwo() throws -> Place {
    let place = try makePlace(), setup = try place.context(), ann = setup.person("Ann")
    setup.person("Bob")
    setup.dog("Fido", age: 3, owner: ann).chip = 1
    setup.dog("Rex", age: 5, owner: ann).chip = 2
    try setup.save()
    return place
  }

  /// The contents of a store during a test.
  final class Place: Sendable {
    let store: TestStore
    private let minimal = MinimalStore.Contents()
    private let contents = MemoryStoreContents()
    let folder: URL
    let model: ManagedObjectModel
    let classes: [ManagedObject.Type]
    let transformers: AttributeTransformerRegistry

    init(
      _ store: TestStore, _ model: ManagedObjectModel, _ classes: [ManagedObject.Type], _ transformers: AttributeTransformerRegistry = [:],
      losesOutcomes: Bool = false
    ) {
      self.losesOutcomes = losesOutcomes
      self.transformers = transformers
      self.store = store
      self.model = model
      self.classes = classes
      folder = Place.all.appendingPathComponent(UUID().uuidString)
      try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The folder of this process's places. It is deleted when the process ends, including places of contexts that kept changes.
    private static let all: URL = {
      atexit { try? FileManager.default.removeItem(at: Place.all) }
      return FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-test-\(ProcessInfo.processInfo.processIdentifier)")
    }()

    /// Keeps the place, and its files, as long as the store can be opened.
    var description: StoreDescription {
      let bare = bareDescription
      return bare.wrapped { store in
        if !self.losesOutcomes { return store }
        let lossy = OutcomeStore(store)
        self.lossyStore.withLock { $0 = lossy }
        return lossy
      }
    }

    private let losesOutcomes: Bool
    private let lossyStore = Mutex<OutcomeStore?>(nil)
    /// The wrapper of the store that was opened last; nil if it can't lose outcomes.
    var outcomes: OutcomeStore? { lossyStore.withLock { $0 } }

    private var bareDescription: StoreDescription {
      switch store {
      case .memory, .second, .child: .memory(contents: contents)
      case .decoys: StoreDescription.memory(contents: contents).wrapped { DecoyStore($0) }
      case .json: .json(at: folder.appendingPathComponent("Kennel.json").path, options: JSONStoreOptions(wholeFile: Place.fast))
      case .spilled: .json(at: folder.appendingPathComponent("Kennel.json").path, options: JSONStoreOptions(wholeFile: Place.deferring))
      case .xml: .xml(at: folder.appendingPathComponent("Kennel.xml").path, options: XMLStoreOptions(wholeFile: Place.fast))
      case .binary:
        .binary(at: folder.appendingPathComponent("Kennel.binary").path, options: BinaryStoreOptions(wholeFile: Place.fast))
      case .sqlite: .sqlite(at: folder.appendingPathComponent("Kennel.sqlite").path, options: SQLiteStoreOptions(storesExactDecimals: true))
      case .weakest: MinimalStore.description(contents: minimal)
      }
    }

    /// These tests don't simulate power loss, so they save half of the disk flushes.
    private static let fast: WholeFileOptions = {
      var options = WholeFileOptions()
      options.file.durability = .normal
      return options
    }()

    private static let deferring: WholeFileOptions = {
      var options = fast
      options.defersWrites = true
      return options
    }()

    /// The coordinator for every context of the place. Weak, because it keeps the place.
    private struct Opened {
      weak var coordinator: PersistentStoreCoordinator?
      var parent: Parent?
    }
    private struct Parent: @unchecked Sendable {  // because a test uses its child contexts in one thread
      let context: ManagedObjectContext
    }
    private let opened = Mutex(Opened())

    /// The current coordinator, or a new one.
    func coordinator() throws -> PersistentStoreCoordinator {
      try opened.withLock { opened in
        if let known = opened.coordinator { return known }
        let coordinator = try coordinator(description)
        opened.coordinator = coordinator
        return coordinator
      }
    }

    private func coordinator(_ description: StoreDescription) throws -> PersistentStoreCoordinator {
      guard store == .second else {
        return try RowSpill.$residentByteCount.withValue(store == .spilled ? 0 : RowSpill.residentByteCount) {
          try PersistentStoreCoordinator(model: self.model, transformers: transformers, store: description)
        }
      }
      let model = try ManagedObjectModel(
        entities: model.declarations, versionIdentifiers: model.versionIdentifiers,
        configurations: [ConfigurationDescription("nothing", [])], composites: model.composites,
        fetchRequestTemplates: model.fetchRequestTemplates)
      return try PersistentStoreCoordinator(
        model: model, transformers: transformers, stores: [.memory().with(configuration: "nothing"), description])
    }

    /// A context with its own coordinator, and the store that records its requests.
    func recording(wrapping: @escaping @Sendable (any IncrementalStore) -> any IncrementalStore = { $0 }) throws -> (
      ManagedObjectContext, RecordingStore
    ) {
      try close()
      let store = RecordingStore(wrapping(description.makeStore()))
      let description = StoreDescription(type: description.type, at: description.location) { withExtendedLifetime(self) { store } }
      let coordinator = try coordinator(description)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: classes)
      store.clear()
      return (context, store)
    }

    /// A context for the contents.
    func context() throws -> ManagedObjectContext {
      let coordinator = try coordinator()
      if store != .child { return try ManagedObjectContext(coordinator: coordinator, classes: classes) }
      let parent = try opened.withLock { opened in
        if let parent = opened.parent { return parent }
        let parent = Parent(context: try ManagedObjectContext(coordinator: coordinator, classes: classes))
        opened.parent = parent
        return parent
      }
      return ManagedObjectContext(parent: parent.context)
    }

    /// Two contexts for the contents: ours, which has the policy, and theirs.
    func twoContexts(_ policy: MergePolicy = .error) throws -> (ManagedObjectContext, ManagedObjectContext) {
      let ours = try context()
      ours.mergePolicy = policy
      return (ours, try context())
    }

    /// Closes the store. The next context reopens it.
    func close() throws {
      try opened.withLock { opened in
        try opened.parent?.context.save()
        opened.parent = nil
        try opened.coordinator?.close()
        opened.coordinator = nil
      }
    }
  }
}

/// The names of all dogs, sorted.
func namesOfDogs(_ context: ManagedObjectContext) throws -> [String] {
  try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.name)
}

extension ManagedObjectContext {
  @discardableResult func dog(_ name: String, age: Int = 1, owner: Person? = nil) -> Dog {
    let dog = insert(Dog.self)
    dog.name = name
    dog.age = age
    dog.owner = owner
    return dog
  }

  @discardableResult func person(_ name: String, city: String? = nil) -> Person {
    let person = insert(Person.self)
    person.name = name
    person.city = city
    return person
  }

  func one<Object: ManagedObject>(
    _ type: Object.Type, @FetchPredicateBuilder<Object> where conditions: (FetchPath<Object, Object>) -> FetchPredicate<Object>
  ) throws -> Object? {
    try fetch(type, where: conditions).first
  }
}
