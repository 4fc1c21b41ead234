import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastStoreRecording

/// The size of the batches in a recording.
@Suite struct RecordedBatchTests {
  /// The bug: the recorder copied all rows of an answer to one batch. A batch of more than 2 GiB ends the process.
  @Test func theRowsOfALargeAnswerAreRecordedInBatches() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let attributes = [AttributeDescription("text", .string, isOptional: true)]
    let model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: attributes)])
    let recorded = StoreDescription.memory().recorded(by: try StoreRecorder(path: path))
    let coordinator = try PersistentStoreCoordinator(model: model, store: recorded)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    for number in 0..<5_000 {
      let note = try context.insert(entityNamed: "Note")
      try note.setValue(.string("\(number) " + String(repeating: "x", count: 100)), forKey: "text")
    }
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator, classes: [])
    #expect(try other.fetch(FetchRequest<ManagedObject>(entityName: "Note")).count == 5_000)
    try coordinator.close()
    let reader = try RecordingReader(path: path)
    var batches: [RowBatch] = []
    while let line = try reader.next() {
      guard case .end(_, .rows(let answer), _) = line else { continue }
      batches += try (answer.rows ?? []).map { try $0.batch() }
    }
    #expect(batches.reduce(0) { $0 + $1.count } == 5_000)
    #expect(batches.allSatisfy { $0.byteCount <= RowBatchBuilder.pageByteCount + 1_000 })
  }
}
