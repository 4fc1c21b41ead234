import Foundation
import Testing

@Suite struct WarehouseTests {
  private static let story = """
    Stocked Hamburg with 6 goods.
    At least 10 in stock, most expensive first:
      Lamp: 12 at 24.95 euros
      Saw: 15 at 18.9 euros
      Hammer: 40 at 12.5 euros
      Screw: 3200 at 0.1 euros
      Nail: 5000 at 0.05 euros
    Sold 4 hammers: changed amount, 36 left.
    Rolled back an anvil for 1 euro: it costs 349 euros again.
    By kind:
      lighting: 1 goods, 12 pieces, at most 24.95 euros each
      part: 2 goods, 8200 pieces, at most 0.1 euros each
      tool: 3 goods, 53 pieces, at most 349 euros each
    Total value: 2300.9 euros.
    Scrapped the lamps: 6 goods before, 5 after.
    The store contains 5 goods.
    """

  @Test(arguments: ExampleStore.allCases) func everyStoreHasTheSameOutput(_ store: ExampleStore) throws {
    #expect(try Example.warehouse.run(store.options, in: TemporaryFolder()) == .success("Deleted 0 old warehouses.", Self.story))
  }

  @Test func memoryIsTheStoreUnlessSaid() throws {
    #expect(try Example.warehouse.run(in: TemporaryFolder()) == .success("Deleted 0 old warehouses.", Self.story))
  }

  @Test(arguments: ExampleStore.files) func aFileKeepsTheWarehouseUntilTheNextStory(_ store: ExampleStore) throws {
    let folder = TemporaryFolder()
    #expect(try Example.warehouse.run(store.options, in: folder).status == 0)
    for _ in 1...2 {
      #expect(try Example.warehouse.run(store.options, in: folder) == .success("Deleted 1 old warehouses.", Self.story))
    }
  }

  @Test(arguments: ExampleStore.files) func aFileThatIsNotAStoreIsRefused(_ store: ExampleStore) throws {
    let folder = TemporaryFolder()
    try folder.write("This is no store.", to: "store.\(store)")
    let outcome = try Example.warehouse.run(store.options, in: folder)
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.contains("Could not open the store at "))
  }

  @Test(arguments: ExampleStore.files) func aFileIsNeeded(_ store: ExampleStore) throws {
    let outcome = try Example.warehouse.run("--store", store.rawValue, in: TemporaryFolder())
    #expect(outcome.status == 64 && outcome.output.isEmpty && outcome.errors.contains("Name it with --at PATH."))
  }
}
