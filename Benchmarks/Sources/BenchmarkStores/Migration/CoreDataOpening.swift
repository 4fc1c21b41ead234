internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastCoreData
internal import HoldfastSQLiteStore
internal import HoldfastStore

/// Measures opening and closing a SQLite file of Core Data.
public struct CoreDataOpening: Sendable {
  private let path: String
  private let model: ManagedObjectModel

  /// The number of entities of the file's model.
  public var entityCount: Int { model.entities.count }

  /// - Parameters:
  ///   - path: The path of the file. It is opened for writing.
  ///   - modelPath: The path of a model or a folder of models, for a file without a model cache. Defaults to none.
  public init(_ path: String, modelsAt modelPath: String? = nil) throws {
    self.path = path
    model = try ManagedObjectModel.model(of: .sqlite(at: path), modelsAt: modelPath)
  }

  /// The least times of some rounds in milliseconds: of plain SQLite, with the model, and with the model from the file's own cache; nil if the
  /// file has none.
  public func milliseconds(rounds: Int) throws -> (plain: Double, withModel: Double, withCache: Double?) {
    let plain = try least(rounds) {
      try BareSQL.run("SELECT Z_UUID, Z_PLIST FROM Z_METADATA; SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY", at: path)
    }
    let withModel = try least(rounds) { try open(model) }
    let hasCache = (try? ManagedObjectModel.model(of: .sqlite(at: path))) != nil
    return (plain, withModel, hasCache ? try least(rounds) { try open(ManagedObjectModel.model(of: .sqlite(at: path))) } : nil)
  }

  private func open(_ model: ManagedObjectModel) throws {
    try PersistentStoreCoordinator(model: model, store: .sqlite(at: path).migrating(automatically: false)).close()
  }

  private func least(_ rounds: Int, _ body: () throws -> Void) rethrows -> Double {
    var least = Double.infinity
    for _ in 0..<rounds { least = min(least, try ContinuousClock().measure(body) / .milliseconds(1)) }
    return least
  }
}
