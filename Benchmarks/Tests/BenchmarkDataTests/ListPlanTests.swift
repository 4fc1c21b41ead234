import BenchmarkData
import Testing

@Suite struct ListPlanTests {
  @Test("Moves and links stay within the list, even in a list of two", arguments: [1, 2, 1000])
  func bounds(_ count: Int) {
    let plan = ListPlan(count: count)
    #expect(plan.count == max(2, count))
    for number in 0...ListPlan.moveCount {
      let move = plan.move(number)
      #expect((0..<plan.count).contains(move.source) && (0..<plan.count).contains(move.target))
    }
    for number in 0..<plan.count { #expect(plan.links(of: number).allSatisfy { (0..<plan.count).contains($0) }) }
  }

  @Test("Lists with different orders have different checksums, and moves change the order")
  func checksums() {
    #expect(ListPlan.checksum([1, 2, 3]) != ListPlan.checksum([2, 1, 3]))
    let plan = ListPlan(count: 1000)
    #expect(plan.expected(.make) == 1000 && plan.expected(.cascade) == 0)
    #expect(plan.expected(.moves) == plan.expected(.saveMoves))
    #expect(plan.expected(.moves) != ListPlan.checksum(0..<1000) && plan.expected(.moves) != plan.expected(.saveMove))
  }

  @Test("Two saves never use the same person, and there are no more phases than people allow")
  func saves() {
    #expect(SavePhase.phases(of: 5).isEmpty)
    #expect(SavePhase.phases(of: 1000) == [.ones, .ten, .hundred])
    let places = SavePhase.allCases.flatMap { Array($0.places) }
    #expect(Set(places).count == places.count && places.count == 1130)
  }
}
