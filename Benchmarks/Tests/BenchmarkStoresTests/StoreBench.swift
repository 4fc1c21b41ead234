import BenchmarkData
import BenchmarkRunner
import BenchmarkStores
import Foundation
import Synchronization

/// Runs the workloads of a store in this process, on files in its own folder.
final class StoreBench {
  static let all: [StoreUnderTest] = [
    .resident(.memory), .wholeFile(.json), .wholeFile(.xml), .wholeFile(.binary), .persistent(.sqlite),
  ]

  private let folder = NSTemporaryDirectory() + "store-bench-" + UUID().uuidString
  private let files: WorkloadContext.PackageFiles?

  /// Prepares a folder, and a package index if requested.
  init(packages: String? = nil) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    files = packages == nil ? nil : WorkloadContext.PackageFiles(stanzas: folder + "/packages", plan: folder + "/plan.json")
    guard let files, let packages else { return }
    try packages.write(toFile: files.stanzas, atomically: true, encoding: .utf8)
    try JSONEncoder().encode(PackagePlan(index: self.packages())).write(to: URL(filePath: files.plan))
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// The package index.
  func packages() throws -> PackageIndex { try PackageSource.file(folder + "/packages").parse() }

  /// Runs all workloads of a store on an input and returns their figures.
  func run(_ store: StoreUnderTest, _ input: MeasurementInput, people: Int = 0, isCounting: Bool = false) throws -> [Figure] {
    let made = StoreFiles(folder + "/" + store.name)
    try made.remove()
    return try store.workloads.filter { $0.input == input }.flatMap { workload in
      var path = made.path
      if workload.use == .changesStore {
        path += "-copy"
        try made.copy(to: StoreFiles(path))
      }
      return try Self.run(workload, path, files, people, isCounting)
    }
  }

  /// Runs one workload and returns its figures.
  static func run(
    _ workload: Workload, _ path: String, _ files: WorkloadContext.PackageFiles?, _ people: Int, _ isCounting: Bool
  ) throws -> [Figure] {
    let figures = Mutex<[Figure]>([])
    try workload.run(
      WorkloadContext(path: path, size: people, isCounting: isCounting, packageFiles: files) { figure in
        figures.withLock { $0.append(figure) }
      })
    return figures.withLock { $0 }
  }

  /// A small archive with links of every kind, cycles, and packages that share a name.
  static let archive =
    (0..<300).map { number in
      """
      Package: \(number % 3 == 0 ? "lib" : "tool")\(number / 2)
      Version: \(number % 5).\(number)
      Architecture: \(number % 2 == 0 ? "all" : "amd64")
      Section: \(["libs", "text", "net", "games", "doc"][number % 5 == 4 ? number % 5 : number % 4])
      Maintainer: Team \(number % 7)\(number % 7 == 3 ? "" : " <team\(number % 7)@example.org>")
      Installed-Size: \(number * 13 % 1500)
      Depends: lib\((number * 7 + 3) % 60), tool\((number + 1) % 60) | tool\((number + 2) % 60)
      Pre-Depends: lib\(number * 3 % 60)
      Recommends: tool\(number * 11 % 60)
      Suggests: lib\(number * 17 % 60)
      Breaks: tool\(number * 19 % 60)
      Conflicts: virtual\(number % 10)
      Replaces: lib\(number * 23 % 60)
      Provides: virtual\((number + 4) % 10)
      Description: \(number % 4 == 0 ? "a library" : "ein Wörk") of number \(number)
       With a second line.
      """
    }.joined(separator: "\n\n") + "\n"
}
