import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Metadata is read without the objects after it, and therefore without the digest at the end of the file.
@Suite(.bothReaders) struct JSONMetadataReadingTests {
  @Test func metadataThatWereEditedByHandAreReadWithoutOpeningAndNotWritten() throws {
    let file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.setMetadata(["owner": .string("Ada")])
    try context.persistentStoreCoordinator.close()
    let edited = try file.text().replacingOccurrences(of: "[\"string\",\"Ada\"]", with: "[\"string\",\"Eve\"]")
    try file.write(edited)

    #expect(try PersistentStoreCoordinator.metadata(for: .json(at: file.path)).userInfo == ["owner": .string("Eve")])
    #expect(file.refusal()?.code == .damaged)
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.setMetadata([:], for: .json(at: file.path)) }
    #expect(error.code == .damaged && error.path == file.path, "\(error)")
    #expect(try file.text() == edited)
  }
}
