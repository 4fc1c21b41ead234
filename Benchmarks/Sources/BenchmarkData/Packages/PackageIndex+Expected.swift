extension PackageIndex {
  /// The expected checksum of a phase, computed from the plain data without a store.
  ///
  /// The phases are independent of each other, even if a process runs several of them.
  public func expected(_ phase: PackagePhase, _ plan: PackagePlan) -> UInt64 {
    switch phase {
    case .importing: UInt64(count + sectionCount + maintainerCount + linkCount)
    case .load: checksum.fieldValue
    case .links: checksum.linkValue
    case .search: expectedSearch(plan.search)
    case .traverse: expectedTraversal(plan.samples)
    case .update: expectedUpdate(plan.updateSection)
    case .delete: expectedDelete(plan.deleteSection)
    }
  }

  private func expectedSearch(_ search: PackagePlan.Search) -> UInt64 {
    let found = (0..<count).map { self[$0] }.filter { isFound($0, search) }
    let keys = found.map(\.key).sorted().prefix(search.limit)
    return PackageAnswers.search(keys.map(\.hash))
  }

  private func isFound(_ package: Package, _ search: PackagePlan.Search) -> Bool {
    guard let size = package.installedSize, size >= search.minimumInstalledSize, size <= search.maximumInstalledSize else { return false }
    guard package.name.utf8.starts(with: search.namePrefix.utf8), let summary = package.summary else { return false }
    return contains(summary, search.summaryPart)
  }

  /// Whether the bytes of one string contain those of another.
  private func contains(_ text: String, _ part: String) -> Bool {
    let text = Array(text.utf8)
    let part = Array(part.utf8)
    return text.count >= part.count && (0...text.count - part.count).contains { text[$0...].starts(with: part) }
  }

  private func expectedTraversal(_ samples: [PackageKey]) -> UInt64 {
    let wanted = Set(samples)
    let starts = (0..<count).filter { wanted.contains(self[$0].key) }
    return starts.reduce(0) { sum, start in reachable(from: start).reduce(sum) { $0 &+ PackageAnswers.traversed(self[$1].name) } }
  }

  /// A package and everything that it depends on, directly or indirectly.
  private func reachable(from start: Int) -> Set<Int> {
    let depends = links(.depends)
    var reached: Set = [start]
    var open = [start]
    while let next = open.popLast() {
      for target in depends[next] where reached.insert(Int(target)).inserted { open.append(Int(target)) }
    }
    return reached
  }

  private func expectedUpdate(_ section: String?) -> UInt64 {
    packages(of: section).reduce(0) { $0 &+ PackageAnswers.updated((self[$1].installedSize ?? 0) + 1) }
  }

  private func expectedDelete(_ section: String?) -> UInt64 {
    let deleted = Set(packages(of: section))
    let remaining = PackageRelationKind.allCases.reduce(0) { sum, kind in
      let links = links(kind)
      return (0..<count).reduce(sum) { sum, source in
        deleted.contains(source) ? sum : sum + links[source].count { !deleted.contains(Int($0)) }
      }
    }
    return PackageAnswers.deleted(deleted.count, remainingLinks: remaining)
  }

  private func packages(of section: String?) -> [Int] {
    (0..<count).filter { section != nil && self[$0].section.map(sectionName) == section }
  }
}

/// Converts a store's answers to checksums. The expected checksums use the same functions.
public enum PackageAnswers {
  /// Found packages in order, as the hashes of their keys.
  public static func search(_ keys: [UInt64]) -> UInt64 {
    keys.enumerated().reduce(UInt64(keys.count)) { $0 &+ UInt64($1.offset + 1) &* $1.element }
  }

  /// The contribution of a package that a traversal reached, including the start.
  public static func traversed(_ name: String) -> UInt64 { FieldHash.of(name) }

  /// The contribution of a package whose installed size was changed.
  public static func updated(_ installedSize: Int64) -> UInt64 { 1 &+ UInt64(bitPattern: installedSize) }

  /// Deleted packages, and the remaining links of all kinds.
  public static func deleted(_ packages: Int, remainingLinks: Int) -> UInt64 { UInt64(packages + 7 * remainingLinks) }
}
