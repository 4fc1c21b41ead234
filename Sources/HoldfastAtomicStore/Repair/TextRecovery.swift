package import HoldfastStore

/// A damaged document of text, divided into its objects.
package struct DamagedText {
  /// Consecutive objects.
  package struct Run {
    /// The text before and after the objects, and between them.
    package var begin: [UInt8] = []
    package var separator: [UInt8] = []
    package var end: [UInt8] = []
    /// The places of the objects in the file.
    package var objects: [Range<Int>] = []

    package init() {}
  }

  /// The bytes of the file.
  package var bytes: [UInt8]
  /// The text before the first object: the file's own, or one that was made for a file whose beginning is damaged.
  package var header: [UInt8] = []
  /// The objects.
  package var runs: [Run] = []
  /// The text between runs.
  package var separator: [UInt8] = []
  /// The text after the last run.
  package var end: [UInt8] = []
  /// The number of places that are neither objects nor what belongs between them.
  package var damagedPlaceCount = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The document with some objects of each run.
  fileprivate func document(_ selection: [(run: Run, objects: ArraySlice<Range<Int>>)]) -> [UInt8] {
    var text = header
    text.reserveCapacity(header.count + selection.reduce(0) { $0 + $1.objects.reduce(0) { $0 + $1.count + 2 } })
    for (place, (run, objects)) in selection.enumerated() {
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
package struct TextRecovery {
  private let text: DamagedText
  private let model: ManagedObjectModel
  private let path: String
  private let keySpace: KeySpace
  private let read: (FileReader, TableLoader) throws -> Void
  private var unreadableCount = 0

  /// Prepares a recovery.
  ///
  /// - Parameter read: Reads a document into a loader, whatever its digest is.
  package init(
    _ text: DamagedText, model: ManagedObjectModel, path: String, keySpace: KeySpace = .family,
    read: @escaping (FileReader, TableLoader) throws -> Void
  ) {
    (self.text, self.model, self.path, self.keySpace, self.read) = (text, model, path, keySpace, read)
  }

  private static let groupSize = 4096

  private var loader: TableLoader { TableLoader(model: model, path: path, keySpace: keySpace) }

  /// Passes all objects that can be read to a new loader.
  package mutating func run(_ report: inout RepairReport) throws -> TableLoader {
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
    let loader = loader
    try read(FileReader(text.document(selection), path: path), loader)
    return loader
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
    do { try read(FileReader(text.document([(run, objects)]), path: path), loader) } catch let error as StoreError {
      switch error.code {
      case .damaged, .newerFormat, .wrongType, .tooLarge, .notAStore, .unstorableValue: return false
      default: throw error
      }
    }
    return true
  }

  /// Whether the objects of a run can be read, judged by its first ones.
  package func fits(_ run: DamagedText.Run) throws -> Bool {
    for object in run.objects.prefix(4) where try isReadable(run, [object]) { return true }
    return false
  }
}
