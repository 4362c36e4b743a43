/// Relations without rows: what the engine does not have, and clients ask for all the same.
extension SystemRelations {
    static let pgEmpty: [SystemRelation] = [
        SystemRelation("pg_auth_members", id: 1261, "roleid oid, member oid, grantor oid, admin_option bool"),
        SystemRelation(
            "pg_policy", id: 3256,
            "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles text, polqual text, polwithcheck text"),
        SystemRelation(
            "pg_statistic_ext", id: 3381,
            "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys text, stxkind text, stxexprs text"
        ),
        SystemRelation(
            "pg_publication", id: 6104,
            "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool"
        ),
        SystemRelation("pg_publication_rel", id: 6106, "oid oid, prpubid oid, prrelid oid"),
        SystemRelation("pg_inherits", id: 2611, "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
        SystemRelation("pg_description", id: 2609, "objoid oid, classoid oid, objsubid int4, description text"),
        SystemRelation("pg_shdescription", id: 2396, "objoid oid, classoid oid, description text"),
        SystemRelation(
            "pg_extension", id: 3079,
            "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig text, extcondition text"
        ),
        SystemRelation(
            "pg_range", id: 3541,
            "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical oid, rngsubdiff oid"),
        SystemRelation("pg_enum", id: 3501, "oid oid, enumtypid oid, enumsortorder float4, enumlabel name"),
        SystemRelation(
            "pg_operator", id: 2617,
            """
            oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, oprcanmerge bool, oprcanhash bool, oprleft oid, oprright oid
            oprresult oid, oprcom oid, oprnegate oid, oprcode oid, oprrest oid, oprjoin oid
            """),
        SystemRelation("pg_cast", id: 2605, "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char"),
        SystemRelation(
            "pg_trigger", id: 2620,
            """
            oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal bool, tgconstrrelid oid
            tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, tgattr text, tgargs text, tgqual text
            tgoldtable name, tgnewtable name
            """),
        SystemRelation(
            "pg_opclass", id: 2616,
            "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault bool, opckeytype oid"
        ),
        SystemRelation(
            "pg_sequence", id: 2224,
            "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, seqcycle bool"),
        SystemRelation(
            "pg_partitioned_table", id: 3350,
            "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs text, partclass text, partcollation text, partexprs text"
        ),
        SystemRelation("pg_db_role_setting", id: 2964, "setdatabase oid, setrole oid, setconfig text"),
        SystemRelation(
            "pg_event_trigger", id: 3466, "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags text"),
        SystemRelation(
            "pg_conversion", id: 2607,
            "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc oid, condefault bool"),
        SystemRelation("pg_opfamily", id: 2753, "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid"),
        SystemRelation(
            "pg_amop", id: 2602,
            """
            oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, amoppurpose char, amopopr oid, amopmethod oid
            amopsortfamily oid
            """),
        SystemRelation(
            "pg_amproc", id: 2603, "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, amproc oid"),
        SystemRelation("pg_default_acl", id: 826, "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl text"),
        SystemRelation("pg_largeobject_metadata", id: 2995, "oid oid, lomowner oid, lomacl text"),
        SystemRelation("pg_publication_namespace", id: 6237, "oid oid, pnpubid oid, pnnspid oid"),
        SystemRelation(
            "pg_subscription", id: 6100,
            """
            oid oid, subdbid oid, subname name, subowner oid, subenabled bool, subbinary bool, substream bool, subconninfo text
            subslotname name, subsynccommit text, subpublications text
            """),
        SystemRelation("pg_ts_config", id: 3602, "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid"),
        SystemRelation("pg_ts_dict", id: 3600, "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text"),
        SystemRelation(
            "pg_ts_parser", id: 3601,
            "oid oid, prsname name, prsnamespace oid, prsstart oid, prstoken oid, prsend oid, prsheadline oid, prslextype oid"),
        SystemRelation("pg_ts_template", id: 3764, "oid oid, tmplname name, tmplnamespace oid, tmplinit oid, tmpllexize oid"),
        SystemRelation("pg_user_mappings", id: 12_035, "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text"),
        SystemRelation("pg_user_mapping", id: 1418, "oid oid, umuser oid, umserver oid, umoptions text"),
        SystemRelation(
            "pg_aggregate", id: 2600, "aggfnoid oid, aggkind char, aggnumdirectargs int2, aggtransfn oid, aggfinalfn oid, aggtranstype oid"),
    ]
}
