import Foundation
import HoldfastModelFile
import HoldfastStore
import Testing

/// Every model that Xcode wrote is a model of Holdfast.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CorpusModelTests {
  @Test(arguments: Corpus.contents) func aModelLoadsAndSurvivesWritingAndReading(_ file: String) throws {
    let document = try ModelDocument(contentsOf: Corpus.path(file))
    let model = try document.model(path: file)
    #expect(model.declarations.count == document.root.children(named: "entity").count)
    let written = try ModelDocument(model)
    let again = try ModelDocument(bytes: written.serialized()).model()
    #expect(again == model)
    #expect(again.versionChecksum == model.versionChecksum)
  }
}
