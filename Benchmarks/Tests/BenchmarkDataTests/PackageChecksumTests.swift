import BenchmarkData
import Testing

@Suite struct PackageChecksumTests {
  let index = PackageFixture.index

  @Test("The order of packages and links doesn't change the checksum")
  func orderIndependent() {
    var checksum = PackageChecksum()
    let keys = (0..<index.count).map { index[$0].key.hash }
    for kind in PackageRelationKind.allCases.reversed() {
      for source in (0..<index.count).reversed() {
        for target in index.links(kind)[source].reversed() { checksum.addLink(kind, from: keys[source], to: keys[Int(target)]) }
      }
    }
    for package in (0..<index.count).reversed() { checksum.add(index[package].fields) }
    #expect(checksum == index.checksum)
    #expect(checksum.fieldValue == index.expected(.load, PackagePlan(index: index)))
    #expect(checksum.linkValue == index.expected(.links, PackagePlan(index: index)))
  }

  @Test("Changing any single field changes the hash")
  func everyFieldCounts() {
    let fields = index[0].fields
    var changed = [PackageFields](repeating: fields, count: 13)
    changed[0].key = PackageKey(name: "editoR", version: fields.key.version, architecture: fields.key.architecture)
    changed[1].key = PackageKey(name: fields.key.name, version: "1:2.0-2", architecture: fields.key.architecture)
    changed[2].key = PackageKey(name: fields.key.name, version: fields.key.version, architecture: "")
    changed[3].section = nil
    changed[4].maintainer = PackageMaintainer(name: "Ånna Editor", email: nil)
    changed[5].installedSize = 421
    changed[6].size = nil
    changed[7].summary = "small editor "
    changed[8].longDescription = "It edits."
    changed[9].homepage = ""
    changed[10].priority = "optionam"
    changed[11].source = "editor-src (2.0"
    changed[12].multiArch = "foreigN"
    #expect(Set(changed.map(\.hash) + [fields.hash]).count == 14)
  }

  @Test("A link has a direction and a kind")
  func linksDiffer() {
    func checksum(_ kind: PackageRelationKind, _ source: UInt64, _ target: UInt64) -> UInt64 {
      var checksum = PackageChecksum()
      checksum.addLink(kind, from: source, to: target)
      return checksum.linkValue
    }
    #expect(Set([checksum(.depends, 1, 2), checksum(.depends, 2, 1), checksum(.suggests, 1, 2)]).count == 3)
  }

  @Test("The hash of a text is the hash of its bytes, and nil differs from the empty text")
  func texts() {
    var bytes = FieldHash()
    Array("größer als acht".utf8).withUnsafeBytes { bytes.combine(bytes: $0) }
    #expect(bytes.value == FieldHash.of("größer als acht"))
    var empty = FieldHash()
    var missing = FieldHash()
    empty.combine("" as String?)
    missing.combine(nil as String?)
    #expect(empty.value != missing.value)
  }
}
