import Testing

/// The program of the README.
@Suite struct FirstGraphTests {
  @Test func itPrintsTheLongWalks() throws {
    let folder = TemporaryFolder()
    #expect(try Example.firstGraph.run(in: folder) == .success("[40, 90]"))
  }
}
