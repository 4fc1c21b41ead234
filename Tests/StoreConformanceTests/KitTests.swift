import HoldfastStoreConformance
import Testing

@Suite struct KitTests {
  @Test func everyCaseHasANameOfItsOwn() {
    let names = StoreConformance.all.map(\.description)
    #expect(Set(names).count == names.count)
  }

  @Test func casesAndUndeclaredCasesAreAllCases() {
    for capabilities in [MemoryHarness().capabilities, MinimalHarness().capabilities] {
      let cases = StoreConformance.cases(for: capabilities), rest = StoreConformance.undeclared(for: capabilities)
      #expect(cases.count + rest.count == StoreConformance.all.count)
      #expect(!cases.isEmpty && !rest.isEmpty)
    }
  }

  @Test func everyRuleHasACase() {
    let tried = Set(StoreConformance.all.map(\.rule))
    let rules = [
      "C1", "C2", "C3", "O1", "O2", "O3", "O4", "O5", "V1", "V2", "V3", "V4", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "R1", "R2", "L1",
      "L2", "L3", "L4", "L5",
      "K1", "Q1", "Q2", "Q3",
    ]
    let saving = ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17"]
    #expect(tried == Set(rules + saving + ["M1", "X1", "X2", "X3", "X4"]))
  }
}
