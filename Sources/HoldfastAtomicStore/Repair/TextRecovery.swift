public import HoldfastStore

/// A damaged document of text, divided into its objects.
public struct DamagedText {
  /// Consecutive objects.
  public struct Run {
    /// The text before the objects.
    public var begin: [UInt8] = []
    /// The text between objects.
    public var separator: [UInt8] = []
    /// The text after the objects.
    public var end: [UInt8] = []
    /// The places of the objects in the file.
    public var objects: [Range<Int>] = []

    /// Creates a run without objects.
    public init() {}
  }

  /// The bytes of the file.
  public var bytes: [UInt8]
  /// The text before the first object: the file's own, or one that was made for a file whose beginning is damaged.
  public var header: [UInt8] = []
  /// A short text that can be before any objects. It is read with each group of objects.
  public var shortHeader: [UInt8] = []
  /// The objects.
  public var runs: [Run] = []
  /// The text between runs.
  public var separator: [UInt8] = []
  /// The text after the last run.
  public var end: [UInt8] = []
  /// Whether the file's own header can't be used.
  public var isHeaderDamaged = false
  /// The number of places that are neither objects nor what belongs between them.
  public var damagedPlaceCount = 0

  /// Creates a document without objects.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The document with some objects of each run.
  fileprivate func document(_ header: [UInt8], _ selection: [(run: Run, objects: ArraySlice<Range<Int>>)]) -> [UInt8] {
    var text = header
    text.reserveCapacity(header.count + selection.reduce(0) { $0 + $1.objects.reduce(0) { $0 + $1.count + 2 } })
    // A run whose entity is lost has no objects.
    for (place, (run, objects)) in selection.filter({ !$0.objects.isEmpty }).enumerated() {
      if place > 0 { text += separator }
      text += run.begin
      for (place, object) in objects.enumerated() {
        if place > 0 { text += run.separator }
        text += bytes[object]
      }
      text += run.end
    }
    return text + end
  }
}

/// Finds the objects of a damaged document that can be read.
///
/// Groups of objects are read as documents of their own. A group that can't be read is halved, so that the time is that of reading the file
/// a few times unless most objects are damaged.
public struct TextRecovery {
  private let text: DamagedText
  private let model: ManagedObjectModel
  private let path: String
  private let keySpace: KeySpace
  private let memory: RowMemory
  private let read: (FileReader, TableLoader) throws -> Void
  private var unreadableCount = 0

  /// Prepares a recovery.
  ///
  /// - Parameters:
  ///   - text: The document.
  ///   - model: The model of the store.
  ///   - path: The path of the file, for errors.
  ///   - keySpace: The scope in which the keys of the file are unique.
  ///   - memory: The memory limit of the rows.
  ///   - read: Reads a document into a loader, whatever its digest is.
  public init(
    _ text: DamagedText, model: ManagedObjectModel, path: String, keySpace: KeySpace = .family, memory: RowMemory,
    read: @escaping (FileReader, TableLoader) throws -> Void
  ) {
    (self.text, self.model, self.path, self.keySpace, self.memory, self.read) = (text, model, path, keySpace, memory, read)
  }

  private static let groupSize = 4096

  private var loader: TableLoader { TableLoader(model: model, path: path, keySpace: keySpace, memory: memory) }

  /// Passes all objects that can be read to a new loader, and counts the others.
  ///
  /// - Throws: The errors of reading that don't mean damage, such as `incompatibleModel`, and `tooLarge` if the rows take too much memory.
  public mutating func run(_ report: inout RepairReport) throws -> TableLoader {
    // Errors of the header aren't those of objects.
    try read(FileReader(text.document(text.shortHeader, []), path: path), loader)
    if let loader = try readAll(&report) { return loader }
    if text.runs.allSatisfy(\.objects.isEmpty) { throw lacksObjects }
    var selection: [(run: DamagedText.Run, objects: ArraySlice<Range<Int>>)] = []
    for run in text.runs {
      var readable: [Range<Int>] = []
      for start in stride(from: 0, to: run.objects.count, by: Self.groupSize) {
        try find(run, run.objects[start..<min(start + Self.groupSize, run.objects.count)], &readable)
      }
      selection.append((run, readable[...]))
    }
    report.damagedPlaceCount += text.damagedPlaceCount
    report.unreadableCount += unreadableCount
    // The file as a whole can't be read, so something else is damaged, for example behind the last object.
    if report.isComplete { report.damagedPlaceCount = 1 }
    report.estimatedLostCount += estimatedLostCount(selection.flatMap { Array($0.objects) })
    let loader = loader
    try read(FileReader(text.document(text.header, selection), path: path), loader)
    return loader
  }

  /// About how many objects were in places that can't be read, as large as the others on average.
  private func estimatedLostCount(_ readable: [Range<Int>]) -> Int {
    let readableByteCount = readable.reduce(0) { $0 + $1.count }
    if readable.isEmpty || readableByteCount == 0 { return 0 }
    // The first and the last object of the file may be among those that can't be read.
    let all = text.runs.flatMap(\.objects), last = all.map(\.upperBound).max() ?? 0
    var lostByteCount = 0, end = all.map(\.lowerBound).min() ?? 0
    for object in readable.sorted(by: { $0.lowerBound < $1.lowerBound }) + [last..<last] {
      let gap = object.lowerBound - end
      if gap > Self.largestSeparator { lostByteCount += gap }
      end = object.upperBound
    }
    return Int((Double(lostByteCount) / (Double(readableByteCount) / Double(readable.count))).rounded())
  }

  /// The maximum size of what is between two objects, such as the end of an entity's list and the name of the next one.
  private static let largestSeparator = 200

  /// Reads the entire file, in which only the digest may be wrong, or which another program formatted.
  private func readAll(_ report: inout RepairReport) throws -> TableLoader? {
    if text.isHeaderDamaged { return nil }
    let loader = loader
    do { try read(FileReader(text.bytes, path: path), loader) } catch is StoreError { return nil }
    report.notes.append("There is no digest, or it doesn't match, and no damaged place was found. A value may be wrong.")
    return loader
  }

  private var lacksObjects: StoreError {
    StoreError(.damaged, operation: RepairRequest.operation, path: path, reason: "No object can be found in the file.")
  }

  private mutating func find(
    _ run: DamagedText.Run, _ objects: ArraySlice<Range<Int>>, _ readable: inout [Range<Int>]
  ) throws {
    if try isReadable(run, objects) { return readable += objects }
    if objects.count == 1 { return unreadableCount += 1 }
    let middle = objects.startIndex + objects.count / 2
    try find(run, objects[..<middle], &readable)
    try find(run, objects[middle...], &readable)
  }

  private func isReadable(_ run: DamagedText.Run, _ objects: ArraySlice<Range<Int>>) throws -> Bool {
    if Task.isCancelled {
      throw StoreError(
        .cancelled, operation: RepairRequest.operation, path: path, reason: "The task was cancelled.", cause: CancellationError())
    }
    do { try read(FileReader(text.document(text.shortHeader, [(run, objects)]), path: path), loader) } catch let error as StoreError {
      switch error.code {
      case .damaged, .newerFormat, .wrongType, .tooLarge, .notAStore, .unstorableValue, .incompatibleModel: return false
      default: throw error
      }
    }
    return true
  }

  /// Whether one of a run's first objects can be read.
  public func fits(_ run: DamagedText.Run) throws -> Bool {
    for object in run.objects.prefix(4) where try isReadable(run, [object]) { return true }
    return false
  }
}
