import ArgumentParser
import Foundation
import Holdfast
import HoldfastCommands

struct Store: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Inspects, checks, compares, copies, migrates and repairs stores of Holdfast and Core Data.",
    subcommands: [
      Info.self, Check.self, Diff.self, Copy.self, Move.self, Convert.self, Migrate.self, Compact.self, Repair.self, Export.self,
      Import.self,
    ])

  struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Shows type, UUID, model, rows per entity and version hashes of a store, including Core Data's SQLite stores.")
    @OptionGroup var input: Source
    @Flag(help: "Write JSON, as documented in Tools/README.md.") var json = false

    func run() throws {
      let report = try Output.asking { () throws(CommandError) in
        try StoreReport(path: input.store, modelPath: input.model, configuration: input.modelConfiguration.name)
      }
      try Output.write(json ? report.json() : Data(report.text().utf8))
    }
  }

  /// The option of commands that can open a file of a configuration.
  struct ModelConfiguration: ParsableArguments {
    @Option(
      name: .customLong("configuration"),
      help: "The configuration of the model that Core Data created the file for, if it lacks the model's other entities.")
    var name: String?
  }

  /// The arguments of all commands that read a store with its model.
  struct Source: ParsableArguments {
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Option(help: "The model to read the store with. Defaults to the model in the store.", completion: .file()) var model: String?
    @OptionGroup var modelConfiguration: ModelConfiguration

    /// - Parameter derivesModel: Whether a model may be derived from the objects of an XML store.
    func source(derivesModel: Bool = false) throws -> StoreSource {
      let source = try Output.asking { () throws(CommandError) in
        try StoreSource(path: store, modelPath: model, configuration: modelConfiguration.name, derivesModel: derivesModel)
      }
      if source.isModelDerived {
        Output.note(
          "\(store) doesn't contain its model. One was derived from its objects, with property names in lower case, without orders and defaults."
        )
      }
      return source
    }
  }

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Reads everything in a store, compares what it contains twice, and shows the digest of its objects.",
      discussion: """
        Finds damage that reading objects doesn't find: in the indexes of SQLite and binary stores, and in the inverse links of binary stores. A \
        store and its copies have the same digest, whatever their types are.
        """)
    @OptionGroup var input: Source

    func run() throws {
      let source = try input.source(derivesModel: true), digest = try Output.asking { () throws(CommandError) in try source.check() }
      try Output.write(Data("\(digest.objectCount) objects, digest \(digest)\n".utf8))
    }
  }

  struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Compares the objects of two stores, which may be of different types. Exits with 2 if they differ.",
      discussion: """
        By id, objects with the same ID are compared, for backups and earlier states of a store. By unique, objects with the same values of \
        the uniqueness constraints or --key are compared. By structure, objects are found by their values and links, whatever their IDs are.
        """)
    @OptionGroup var input: Source
    @Argument(help: "The other store's file.", completion: .file()) var other: String
    @Option(help: "How objects are matched: id, unique or structure. Defaults to unique with --key, and to id otherwise.")
    var by: StoreDifference.Method?
    @Option(help: "Properties that identify an entity's objects: Entity=property,property. Can be repeated.") var key: [String] = []
    @Flag(help: "Show the values that differ.") var values = false
    @Option(help: "The maximum number of differences to list.") var limit = 1_000

    func run() throws {
      let source = try input.source()
      let result = try Output.asking { () throws(CommandError) in
        try StoreDifference(source, other, by: by, keys: key, includesValues: values, limit: limit)
      }
      try Output.write(Data(result.text().utf8))
      if !result.difference.isEmpty { throw ExitCode(2) }
    }
  }

  struct Copy: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Copies a store to a file of the same type, with external files.",
      discussion: "No backup is needed, because the store isn't changed, and nothing at the new path is replaced.")
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Argument(help: "The new file.", completion: .file()) var output: String

    func run() throws {
      try Output.asking { () throws(CommandError) in try StoreFile(path: store).copy(to: output) }
    }
  }

  struct Move: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Moves a store to a file of the same type, with external files and logs.",
      discussion: """
        No backup is needed, because the new file contains everything before the old one is removed, and nothing at the new path is replaced. \
        Previous versions beside the old file, such as zoo.json~1, are moved as well.
        """)
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Argument(help: "The new file.", completion: .file()) var output: String

    func run() throws {
      try Output.asking { () throws(CommandError) in try StoreFile(path: store).move(to: output) }
    }
  }

  struct Convert: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Copies a store to one of another type, and compares both.",
      discussion: """
        The output's extension is .sqlite, .json, .xml or .binary. Its objects have other IDs. No backup is needed, because the store isn't \
        changed, and nothing at the new path is replaced.
        """)
    @OptionGroup var input: Source
    @Argument(help: "The new file.", completion: .file()) var output: String

    func run() throws {
      let source = try input.source(derivesModel: true),
        digest = try Output.asking { () throws(CommandError) in try source.convert(to: output) }
      try Output.write(Data("\(digest.objectCount) objects, digest \(digest)\n".utf8))
    }
  }

  struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Writes all objects to a JSON file, or to a folder with a CSV file for each entity.",
      discussion: "The form is described in Tools/README.md. Metadata isn't written.")
    @OptionGroup var input: Source
    @Argument(help: "The new file, or the new folder.", completion: .file()) var output: String
    @Option(help: "The format. Defaults to JSON if the output's extension is .json, and to CSV otherwise.") var format: ExchangeFormat?

    func run() throws {
      let source = try input.source(derivesModel: true),
        count = try Output.asking { () throws(CommandError) in try source.export(to: output, format) }
      try Output.write(Data("\(count) objects\n".utf8))
    }
  }

  struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Adds the objects of a JSON file or a folder of CSV files to a store: all of them, or none.",
      discussion: """
        The form is that of export. The objects get new IDs. If there is no store, it is created: its extension is .sqlite, .json, .xml or \
        .binary. If there is one, asks on a terminal, and otherwise needs --yes. Before, the store is copied to a file beside it, whose name \
        contains -backup.
        """)
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Argument(help: "The exported file or folder.", completion: .file()) var input: String
    @Option(help: "The model. Defaults to the model in the store.", completion: .file()) var model: String?
    @OptionGroup var modelConfiguration: ModelConfiguration
    @OptionGroup var consent: Consent
    @OptionGroup var backup: Backup

    func run() throws {
      var copy: String?
      let exists = FileManager.default.fileExists(atPath: store)
      if exists {
        _ = try Output.asking { () throws(CommandError) in try StoreFile(path: store) }
        try consent.confirm("Objects would be added to the store.", "Import them?", "To add them")
        copy = backup.path(of: store)
      }
      let count = try Output.asking { () throws(CommandError) in
        try StoreSource.importObjects(
          into: store, modelPath: model, configuration: modelConfiguration.name, from: input, backup: copy, onlyCreates: !exists)
      }
      try Output.writeResult("\(count) objects imported\(Backup.sentence(copy))")
    }
  }

  struct Compact: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Rebuilds a SQLite store without unused space.",
      discussion: """
        Asks on a terminal, and otherwise needs --yes. Before, the store is copied to a file beside it, whose name contains -backup. \
        Other stores have no unused space, so the command succeeds without doing anything.
        """)
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @OptionGroup var consent: Consent
    @OptionGroup var backup: Backup

    func run() throws {
      let file = try Output.asking { () throws(CommandError) in try StoreFile(path: store) }
      if try Output.asking({ () throws(CommandError) in try file.isAlwaysCompact() }) {
        try Output.write(Data("Nothing needs to be done: only SQLite stores have unused space.\n".utf8))
        return
      }
      try consent.confirm("The store's file would be rebuilt.", "Compact it?", "To rebuild it")
      let copy = backup.path(of: store)
      let sizes = try Output.asking { () throws(CommandError) in try file.compact(backup: copy) }
      try Output.writeResult("\(sizes.before) bytes before, \(sizes.after) after\(Backup.sentence(copy))")
    }
  }

  struct Repair: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Creates a store from what can be read of a damaged one, which isn't changed.",
      discussion: """
        Shows what was recovered, and counts what wasn't. Exits with 2 if something is lost or may be wrong. No other process may have the \
        damaged store open. No backup is needed, because nothing at the new path is replaced.
        """)
    @Argument(help: "The damaged store's file.", completion: .file()) var store: String
    @Argument(help: "The new file, of the same type.", completion: .file()) var output: String
    @Option(help: "The store's model. Defaults to the model in the store.", completion: .file()) var model: String?

    func run() throws {
      let repair = try Output.asking { () throws(CommandError) in try StoreRepair(path: store, output: output, modelPath: model) }
      try Output.write(Data("\(repair.report)\n".utf8))
      if !repair.report.isComplete { throw ExitCode(2) }
    }
  }

  struct Migrate: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Migrates a store to another version of its model.",
      discussion: """
        Shows the objects of each entity, what would be lost, and the time and space that the migration needs. If something is lost, asks on a \
        terminal, and otherwise needs --yes. Before, the store is copied to a file beside it, whose name contains -backup. With mapping models, \
        the migration is tried on a copy first.
        """)
    @Argument(help: "The store's file.", completion: .file()) var store: String
    @Option(
      help: "The model to read the store with. Defaults to the model in the store, and with mapping models to the new model's versions.",
      completion: .file()) var model: String?
    @Option(help: "The new model.", completion: .file()) var to: String
    @Option(help: "The version of the new model. Defaults to the current one.") var version: String?
    @Option(help: "A folder with Core Data's mapping models (.xcmappingmodel or .cdm). They can't need code.", completion: .directory)
    var mappingModels: String?
    @Flag(help: "Only show what would be done.") var dryRun = false
    @OptionGroup var consent: Consent
    @OptionGroup var backup: Backup

    func run() throws {
      let migration = try Output.asking { () throws(CommandError) in
        let source = try StoreSource(path: store, modelPath: model ?? (mappingModels == nil ? nil : to))
        return try StoreMigration(of: source, to: to, version: version, mappingModels: mappingModels)
      }
      if migration.previews.isEmpty { return try Output.write(Data("The store already has this version.\n".utf8)) }
      try Output.write(Data((migration.previews.map { "\($0)\n" }.joined(separator: "\n")).utf8))
      if dryRun { return }
      if migration.losesData { try consent.confirm("Data would be lost.", "Migrate anyway?", "To lose it") }
      let copy = backup.path(of: store)
      try Output.asking { () throws(CommandError) in try migration.run(backup: copy) }
      let done = migration.objectCount.map { "\($0) objects migrated" } ?? "The store was migrated"
      try Output.writeResult("\(done)\(copy == nil ? "." : Backup.sentence(copy))")
    }
  }
}
